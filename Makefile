VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OLDER := $(VENV)/older

# Tried in this order; the first that runs, is new enough and can make a virtual environment is used.
PYTHON ?=
CANDIDATES := $(PYTHON) python3.13 python3.12 python3.11 python3
# The lock is made with the oldest supported Python, so that its versions exist for every later one.
LOCK_PYTHON ?= python3.11

# Sets the shell variable `found` to the first usable interpreter of its argument, or fails with a remedy.
define find_python
found=; bare=; \
for candidate in $(1); do \
  "$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
  if "$$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1; then found=$$candidate; break; fi; \
  bare=$${bare:-$$candidate}; \
done; \
if [ -z "$$found" ] && [ -n "$$bare" ]; then \
  echo "error: $$bare runs but lacks the venv or ensurepip module;" >&2; \
  echo "install it (on Debian and Ubuntu: the package python3-venv), or name another with PYTHON=..." >&2; \
  exit 1; \
fi; \
if [ -z "$$found" ]; then \
  echo "error: no working Python 3.11 or later among: $(strip $(1))" >&2; \
  echo "install one, or name it with PYTHON=/path/to/python" >&2; \
  exit 1; \
fi
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test check quick bench soak calibrate lock clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-14s %s\n", $$1, $$2 }'

demo: $(STAMP) ## does memory help on FlickeringCartPole? compare the arms, write runs/demo
	$(BIN)/thrust compare FlickeringCartPole-v0 --seeds 5 --total-timesteps 500000 \
		--num-envs 16 --num-steps 128 --out runs/demo --fresh

test: $(STAMP) $(OLDER)/gymnax ## every test
	$(BIN)/python -m pytest -n 2

check: $(STAMP) ## lint, format, types and floors
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy src
	$(BIN)/lint-imports

quick: $(STAMP) ## the tests that take seconds
	$(BIN)/python -m pytest -n 2 -m "not slow and not learning"

bench: $(STAMP) ## measure throughput
	$(BIN)/python benchmarks/throughput.py

soak: $(STAMP) ## train for a long time, looking for leaks and drift
	$(BIN)/python benchmarks/soak.py

calibrate: $(STAMP) ## measure how often the verdict is wrong
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/calibration.py

lock: ## write constraints.txt anew, from the newest versions that resolve
	@$(call find_python,$(LOCK_PYTHON)); \
	fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && \
	"$$found" -m venv "$$fresh/venv" && \
	"$$fresh/venv/bin/python" -m pip install --quiet -e '.[dev]' && \
	echo '# Exact versions the tests run against; Python 3.11 is the reference. Written by `make lock`.' \
		> "$$fresh/constraints.txt" && \
	"$$fresh/venv/bin/python" -m pip freeze --exclude-editable >> "$$fresh/constraints.txt" && \
	cp "$$fresh/constraints.txt" constraints.txt

clean: ## remove the environment, the caches and the build products (runs/ is kept)
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests benchmarks docs -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(STAMP): pyproject.toml constraints.txt
	@$(call find_python,$(CANDIDATES)); \
	echo "making $(VENV) with $$found ($$("$$found" --version))"; \
	"$$found" -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@

# An older release of a package, which cannot be installed beside the newer one; without it its tests are skipped.
$(OLDER)/gymnax: $(STAMP)
	-$(BIN)/python -m pip install --quiet --no-deps --upgrade --target $(OLDER) gymnax==0.0.9
	@test ! -d $@ || touch $@
