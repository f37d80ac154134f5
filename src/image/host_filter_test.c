/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_filter.h"

#include "base/cleanup.h"
#include "t.h"

static void secrets_and_identity_stay_out_by_name(void)
{
	static const char *const out[] = {
		"etc/shadow",
		"etc/shadow-",
		"etc/gshadow.bak",
		"etc/sudoers",
		"etc/sudoers.d",
		"etc/ssh/ssh_host_ed25519_key",
		"etc/ssh/ssh_host_ed25519_key.pub",
		"etc/ssl/private",
		"etc/pki/tls/private",
		"etc/machine-id",
		"etc/hostname",
		"etc/hosts",
		"etc/resolv.conf",
		"etc/fstab",
		"etc/crypttab",
		"etc/krb5.keytab",
		"etc/NetworkManager",
		"etc/wireguard",
		"etc/docker",
		"etc/kubernetes",
		"etc/letsencrypt",
		"etc/cron.d",
		"etc/crontab",
		"etc/systemd/network",
		"etc/apt/auth.conf",
		"etc/apt/auth.conf.d",
		"etc/environment",
		"etc/security/opasswd",
		"etc/subuid",
		"etc/.pwd.lock",
		"etc/nginx/site.key",
		"etc/nginx/site.pem",
		"etc/site.pem",
		"etc/ssl/certs/site.key",
		"etc/.git",
		"etc/foo/.git",
		"etc/passwd",
		"etc/passwd-",
		"etc/foo/bar.conf~",
		"etc/foo/bar.dpkg-old",
		"etc/netrc",
	};

	for (size_t i = 0; i < ARRAY_LEN(out); i++) {
		if (!host_filter_path(out[i]))
			printf("# %s\n", out[i]);
		CHECK(host_filter_path(out[i]));
	}
}

static void what_programs_need_comes_along(void)
{
	static const char *const in[] = {
		"etc/os-release",	"etc/ld.so.cache",	    "etc/nsswitch.conf",
		"etc/alternatives/cc",	"etc/ssl/certs/root.pem",   "etc/ca-certificates/x.pem",
		"etc/apt/sources.list", "etc/systemd/system.conf",  "etc/networks",
		"etc/ssh/ssh_config",	"etc/security/limits.conf", "etc/pam.d/common-auth",
		"etc/host.conf",	"etc/groff/man.local",	    "etc/profile",
	};

	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		if (host_filter_path(in[i]))
			printf("# %s\n", in[i]);
		CHECK(!host_filter_path(in[i]));
	}
}

static const char *content(const char *path, const char *text)
{
	return host_filter_content(path, str_of(text));
}

static void passwords_in_addresses_are_found(void)
{
	CHECK(content("etc/apt/apt.conf", "Acquire::http::Proxy \"http://bob:pw@proxy:3128\";"));
	CHECK(content("etc/x", "deb https://ghp_0123456789abcdef@host/ x main"));
	CHECK(content("etc/x", "a://b c://u:p@h"));
	CHECK(content("etc/x", "#http://u:p@h"));
	CHECK(content("etc/x", "x://:p@h"));
	CHECK(!content("etc/x", "deb https://deb.example:443/debian stable main"));
	CHECK(!content("etc/x", "see http://h/a:b@c"));
	CHECK(!content("etc/x", "http://h:80 mail a@b"));
	CHECK(!content("etc/x", "ssh://git@host/x"));
	CHECK(!content("etc/x", "://"));
	CHECK(!content("etc/x", "a://u:p"));
	CHECK(!content("etc/x", ""));
	CHECK(!host_filter_content("etc/x", STR_NONE));
}

static void keys_and_tokens_are_found(void)
{
	CHECK(content("etc/x", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA"));
	CHECK(content("etc/npmrc", "//r.example/:_authToken=abc"));
	CHECK(!content("etc/npmrc", "cafile=/etc/ssl/certs/ca.crt"));
	CHECK(!content("etc/ssl/certs/a.pem", "-----BEGIN CERTIFICATE-----\n"));
}

T_MAIN(T(secrets_and_identity_stay_out_by_name), T(what_programs_need_comes_along),
       T(passwords_in_addresses_are_found), T(keys_and_tokens_are_found))
