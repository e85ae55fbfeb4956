.PHONY: run test lint prove bench docs

run test lint prove bench docs:
	python3 dev.py $@ $(ARGS)
