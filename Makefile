# Everything here assumes .venv, which ./test makes.
PYTHON := .venv/bin/python
BIN := .venv/bin

.PHONY: serve test fmt lint types drift check contract covered bench soak

serve:  ## Serve in this terminal, on $$NERVE_HOME or ~/.nerve
	$(BIN)/nerve start --foreground

test:
	./test

fmt:
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

lint:
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/lint-imports --no-cache

types:
	$(PYTHON) -m mypy

drift:  ## Whether nerve/contract/ is what spec/ says
	$(PYTHON) tools/generate_contract.py --check

check: lint types drift covered test

contract:  ## Rewrite nerve/contract/ from spec/
	$(PYTHON) tools/generate_contract.py

covered:  ## Which requirements of spec/requirements.md a test names
	$(PYTHON) -m tools.requirements_covered

bench:
	$(PYTHON) -m benchmarks

soak:  ## The long proofs in full, about half an hour; CI and ./test run a sample of each
	$(PYTHON) tools/set_up.py soak
	NERVE_SOAK=whole $(PYTHON) -m pytest -m soak -o faulthandler_timeout=3600
