/* SPDX-License-Identifier: Apache-2.0 */
#include "base/signal_name.h"

#include <signal.h>
#include <stddef.h>

#include "base/cleanup.h"

#define NAME(n) [SIG##n] = #n

static const char *const names[] = {
	NAME(HUP),  NAME(INT),	  NAME(QUIT), NAME(ILL),  NAME(TRAP),	NAME(ABRT), NAME(BUS),
	NAME(FPE),  NAME(KILL),	  NAME(USR1), NAME(SEGV), NAME(USR2),	NAME(PIPE), NAME(ALRM),
	NAME(TERM), NAME(STKFLT), NAME(CHLD), NAME(CONT), NAME(STOP),	NAME(TSTP), NAME(TTIN),
	NAME(TTOU), NAME(URG),	  NAME(XCPU), NAME(XFSZ), NAME(VTALRM), NAME(PROF), NAME(WINCH),
	NAME(POLL), NAME(PWR),	  NAME(SYS),
};

const char *signal_name(int64_t sig)
{
	return sig > 0 && sig < (int64_t)ARRAY_LEN(names) ? names[sig] : NULL;
}
