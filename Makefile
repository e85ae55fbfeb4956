.PHONY: run test lint prove torture bench docs

run test lint prove torture bench docs:
	python3 dev.py $@ $(ARGS)
