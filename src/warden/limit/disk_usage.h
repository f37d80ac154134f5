/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Bytes that a tree takes below fd: blocks, at least 4 KiB for every name, a file with several
 * names shared among them. Follows nothing. Stops above `most`. UINT64_MAX: too deep.
 */
uint64_t disk_usage(int fd, uint64_t most);
