/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/process/patience.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>

static sigjmp_buf *volatile target;

static void on_alarm(int sig)
{
	sigjmp_buf *jump = target;

	(void)sig;
	target = NULL;
	if (jump)
		siglongjmp(*jump, 1);
}

static int set_timer(int ms)
{
	const struct timeval after = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	const struct itimerval t = { .it_value = after, .it_interval = after };

	return setitimer(ITIMER_REAL, &t, NULL) < 0 ? -errno : 0;
}

int patience_begin(int ms, sigjmp_buf *jump)
{
	/* NODEFER: a jump may leave the handler, and then no mask has to be restored. */
	const struct sigaction act = { .sa_handler = on_alarm, .sa_flags = SA_NODEFER };
	static bool handled;

	if (!handled && sigaction(SIGALRM, &act, NULL) < 0)
		return -errno;
	handled = true;
	target = jump;
	return set_timer(ms);
}

void patience_end(void)
{
	target = NULL;
	(void)set_timer(0);
}
