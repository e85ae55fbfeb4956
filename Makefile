.PHONY: run test lint prove bench

run test lint prove bench:
	python3 dev.py $@ $(ARGS)
