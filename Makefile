# Thin front for CMake and Ninja. `make build` gives build/phrun.
BUILD := build
PREFIX ?= /usr/local
.PHONY: all build run test test-long bench peers parity install format clean

all: build

$(BUILD)/build.ninja: CMakeLists.txt
	@cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=$(PREFIX) >$(BUILD).log 2>&1 \
	  || { cat $(BUILD).log; rm -f $(BUILD).log; exit 1; }
	@rm -f $(BUILD).log

build:
	@scripts/deps.sh
	@$(MAKE) -s --no-print-directory $(BUILD)/build.ninja
	@ninja -C $(BUILD) --quiet phrun

run: build
	@$(BUILD)/phrun run specs/quick.lua

test:
	@scripts/deps.sh test
	@scripts/test.sh

test-long:
	@scripts/deps.sh test long
	@scripts/test.sh build long

bench: build
	@$(BUILD)/phrun bench

# PyTorch, JAX and numpy in build/peers, for comparisons (a download of about 750 MB).
peers:
	@scripts/deps.sh
	@scripts/peers.sh

# Training, schedules and ops beside PyTorch, in that environment.
parity: build
	@scripts/parity.sh

install: build
	@cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@ninja -C $(BUILD) --quiet phrun
	@cmake --install $(BUILD)

format:
	@clang-format -i $$(git ls-files '*.c' '*.h')

clean:
	@rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-clang $(BUILD)-logs
