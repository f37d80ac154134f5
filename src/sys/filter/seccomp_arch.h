/* SPDX-License-Identifier: Apache-2.0 */
/* The only ABI whose system calls we allow. */
#pragma once

#include <linux/audit.h>

#if defined(__x86_64__)
#define SECCOMP_NATIVE_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define SECCOMP_NATIVE_ARCH AUDIT_ARCH_AARCH64
#else
#error "seccomp: name the audit architecture of this machine"
#endif
