/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_packages.h"

#include "t.h"

static bool takes(const char *line)
{
	char out[32];

	return host_packages_path(str_of(line), out, sizeof out);
}

static void directories_of_var_are_taken(void)
{
	char out[32];

	CHECK(host_packages_path(STR("/var/lib/xml-core"), out, sizeof out));
	CHECK_STR(out, "var/lib/xml-core");
}

static void other_paths_are_not_taken(void)
{
	CHECK(!takes("/usr/lib/x") && !takes("/var") && !takes("/var/") && !takes("/variety"));
	CHECK(!takes("var/lib/x") && !takes("") && !takes("/var/lib/dpkg/info"));
}

static void a_path_cannot_lead_elsewhere(void)
{
	CHECK(!takes("/var/lib/../../etc") && !takes("/var/..") && !takes("/var//lib"));
	CHECK(!takes("/var/lib/./x") && !takes("/var/lib/.hidden"));
}

static void a_path_that_is_too_long_is_left_out(void)
{
	CHECK(takes("/var/lib/01234567890123456789012"));
	CHECK(!takes("/var/lib/012345678901234567890123"));
}

T_MAIN(T(directories_of_var_are_taken), T(other_paths_are_not_taken),
       T(a_path_cannot_lead_elsewhere), T(a_path_that_is_too_long_is_left_out))
