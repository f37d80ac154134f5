# SPDX-License-Identifier: Apache-2.0
# A small front to meson. Every target first sees to the packages that it needs.

PREFIX  ?= /usr/local
SECONDS ?= 30
BUILD   := build
ASAN    := build-asan

.PHONY: all run test test-deep install deb bench asan fuzz lint clean

all:
	@scripts/setup build
	@TARGETS=programs scripts/build $(BUILD)

run: all
	@scripts/tour $(BUILD)

test:
	@scripts/setup build test
	@scripts/build $(BUILD)
	@scripts/test $(BUILD)

# Every fault point, long kill loops, 10,000 snapshots: hours. Run it when you touch what it covers.
test-deep:
	@scripts/setup build test
	@scripts/build $(BUILD)
	@scripts/test-deep $(BUILD)

install: all
	@meson configure $(BUILD) -Dprefix=$(abspath $(PREFIX))
	@ninja -C $(BUILD) --quiet build.ninja >/dev/null
	meson install --no-rebuild -C $(BUILD)

deb: all
	@scripts/setup deb
	@scripts/deb $(BUILD)

bench:
	@scripts/setup build bench
	@TARGETS=programs scripts/build $(BUILD)
	@scripts/bench $(BUILD)

asan:
	@scripts/setup build test
	@scripts/build $(ASAN) -Db_sanitize=address,undefined -Db_lundef=false
	@CAY_VM=0 scripts/test $(ASAN)

fuzz:
	@scripts/setup build fuzz
	@scripts/fuzz $(SECONDS)

lint:
	@scripts/setup build lint
	@scripts/lint

clean:
	rm -rf build build-*
