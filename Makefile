.PHONY: run test lint simulate explore chaos benchmark docs

run test lint simulate explore chaos benchmark docs:
	python3 dev.py $@ $(ARGS)
