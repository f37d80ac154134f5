/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel interfaces by pidfd, from a newer linux/pidfd.h than the one we build with. */
#pragma once

#include <stdint.h>
#include <sys/ioctl.h>

struct pidfd_info_v0 {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid;
	uint32_t ids[8];
	int32_t exit_code;
};

#define PIDFD_IOCTL_PIDNS (int)_IO(0xFF, 5)			     /* 6.11 */
#define PIDFD_IOCTL_INFO  (int)_IOWR(0xFF, 11, struct pidfd_info_v0) /* 6.13 */
#define PIDFD_HAS_PID	  (1u << 0)
#define PIDFD_HAS_CGROUP  (1u << 2)
#define PIDFD_HAS_EXIT	  (1u << 3) /* 6.15; only after the process was reaped */
