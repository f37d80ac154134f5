/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the sanitizers do in programs that get no environment, and whose standard error nobody
 * reads: each report is a file, and scripts/test counts these. Leaks are looked for in unit
 * tests; most programs here are undumpable, and so cannot be looked at.
 */
#define OPTIONS "log_path=" REPORTS "/report:exitcode=99:"

const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

const char *__asan_default_options(void)
{
	return OPTIONS "detect_leaks=0:check_initialization_order=1:strict_string_checks=1";
}

const char *__ubsan_default_options(void)
{
	return OPTIONS "halt_on_error=1:print_stacktrace=1";
}
