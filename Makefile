.PHONY: run test lint simulate chaos benchmark docs

run test lint simulate chaos benchmark docs:
	python3 dev.py $@ $(ARGS)
