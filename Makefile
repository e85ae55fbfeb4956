.PHONY: run test lint prove torture bench

run test lint prove torture bench:
	python3 dev.py $@ $(ARGS)
