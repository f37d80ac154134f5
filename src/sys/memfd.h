/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A sealed copy of a program in memory: nobody who runs it can change it. fd or -errno. */
int memfd_program(const char *path, const char *name);
