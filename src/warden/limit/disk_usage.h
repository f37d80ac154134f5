/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/*
 * Bytes used by a tree below fd: blocks, at least 4 KiB per name; the names of one file share its
 * blocks. Follows no links. Stops above `most`. UINT64_MAX: too deep.
 */
uint64_t disk_usage(int fd, uint64_t most);
