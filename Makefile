.PHONY: run test lint bench

run test lint bench:
	python3 dev.py $@ $(ARGS)
