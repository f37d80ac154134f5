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

static void files_that_programs_need_are_included(void)
{
	static const char *const in[] = {
		"etc/os-release",
		"etc/ld.so.cache",
		"etc/nsswitch.conf",
		"etc/alternatives/cc",
		"etc/ssl/certs/root.pem",
		"etc/ca-certificates/x.pem",
		"etc/apt/sources.list",
		"etc/ssh/ssh_config.d",
		"etc/networks",
		"etc/ssh/ssh_config",
		"etc/security/limits.conf",
		"etc/pam.d/common-auth",
		"etc/host.conf",
		"etc/groff/man.local",
		"etc/profile",
		"etc/ssh",
		"etc/default",
		"etc/default/locale",
		"etc/java-17-openjdk/security/java.security",
	};

	for (size_t i = 0; i < ARRAY_LEN(in); i++) {
		if (host_filter_path(in[i]))
			printf("# %s\n", in[i]);
		CHECK(!host_filter_path(in[i]));
	}
}

static void unlisted_files_stay_out(void)
{
	static const char *const out[] = {
		"etc/nginx",	       "etc/systemd",	      "etc/systemd/system/app.service",
		"etc/my-company.conf", "etc/default/docker",  "etc/ssh/sshd_config",
		"etc/ldap/slapd.d",    "etc/profile.d.local", "etc/ssh_config",
		"etc/os-release2",     "etc/modprobe.d",      "etc/mysql/my.cnf",
	};

	for (size_t i = 0; i < ARRAY_LEN(out); i++) {
		if (!host_filter_path(out[i]))
			printf("# %s\n", out[i]);
		CHECK(host_filter_path(out[i]));
	}
}

static void credentials_in_opt_stay_out_by_name(void)
{
	static const char *const out[] = {
		"opt/app/.env",
		"opt/app/.env.production",
		"opt/app/id_rsa",
		"opt/app/tls/server.key",
		"opt/x/.netrc",
		"opt/x/.aws",
		"opt/x/.git-credentials",
		"opt/x/.pgpass",
		"usr/local/www/.htpasswd",
		"usr/local/x/.ssh",
		"opt/x/.bash_history",
		"opt/x/release.keystore",
	};
	static const char *const in[] = {
		"opt/app/.env.example",	   "usr/local/bin/htpasswd",
		"usr/local/go/go.env",	   "opt/app/.git",
		"opt/app/cacert.pem",	   "opt/app/main.old",
		"usr/local/lib/libkey.so",
	};

	for (size_t i = 0; i < ARRAY_LEN(out); i++)
		CHECK(host_filter_local(out[i]));
	for (size_t i = 0; i < ARRAY_LEN(in); i++)
		CHECK(!host_filter_local(in[i]));
}

static void settings_are_read_and_packages_are_not(void)
{
	CHECK(host_filter_reads("opt/app/.git/config") && host_filter_reads("opt/app/conf/db.yml"));
	CHECK(host_filter_reads("opt/a/site-packages/x/cert.pem"));
	CHECK(!host_filter_reads("opt/a/node_modules/x/package.json"));
	CHECK(!host_filter_reads("opt/app/main.c") && !host_filter_reads("opt/app/config"));
	CHECK(host_filter_suspect("opt/app/secrets.yml") &&
	      host_filter_suspect("opt/app/API-TOKEN"));
	CHECK(!host_filter_suspect("opt/app/tokenizer.py") && !host_filter_suspect("opt/app/main"));
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

static void secrets_in_variables_and_elements_are_found(void)
{
	CHECK(content("etc/profile.d/x.sh", "export GITHUB_TOKEN=abc\n"));
	CHECK(content("opt/x.service", "[Service]\nEnvironment=\"DB_PASSWORD=hunter2\"\n"));
	CHECK(content("etc/profile.d/x.sh", "AWS_SECRET_ACCESS_KEY='x'"));
	CHECK(!content("etc/x", "DB_PASSWORD=\nOTHER=1\n"));
	CHECK(!content("etc/x", "TOKEN=\"$1\"\nPASSWORD_FILE=/run/secret\n"));
	CHECK(!content("etc/ssl/openssl.cnf", "challengePassword\t= A challenge password\n"));
	CHECK(!content("etc/pam.d/x", "password\t[success=1 default=ignore]\tpam_unix.so\n"));
	CHECK(content("etc/yum.repos.d/x.repo", "[x]\nusername=a\npassword=hunter2\n"));
	CHECK(content("opt/app/db.yml", "production:\n  password: hunter2\n"));
	CHECK(content("opt/app/a.ini", "\tsmtp_password = \"hunter2\""));
	CHECK(!content("opt/app/db.yml",
		       "  password: <%= ENV['X'] %>\n  password: \n# password: x\n"));
	CHECK(!content("opt/app/config/locales/en.yml", "password: Password\n"));
	CHECK(!content("opt/app/schema.conf", "password: {\npassword\n"));
	CHECK(!content("etc/nsswitch.conf", "passwd: files systemd\n"));
	CHECK(!content("etc/debconf.conf", "Name: passwords\nAccept-Type: password\n"));
	CHECK(content("etc/maven/settings.xml", "<server><password>x</password></server>"));
	CHECK(!content("etc/maven/settings.xml", "<!-- <password>x</password> --><a/>"));
	CHECK(!content("etc/maven/settings.xml", "<!-- <password>x"));
	CHECK(content("opt/a/.git/config", "[http]\n\textraheader = AUTHORIZATION: basic x\n"));
}

static void keys_and_tokens_are_found(void)
{
	CHECK(content("etc/x", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA"));
	CHECK(content("etc/npmrc", "//r.example/:_authToken=abc"));
	CHECK(!content("etc/npmrc", "cafile=/etc/ssl/certs/ca.crt"));
	CHECK(!content("etc/ssl/certs/a.pem", "-----BEGIN CERTIFICATE-----\n"));
}

T_MAIN(T(secrets_and_identity_stay_out_by_name), T(files_that_programs_need_are_included),
       T(unlisted_files_stay_out), T(credentials_in_opt_stay_out_by_name),
       T(settings_are_read_and_packages_are_not), T(secrets_in_variables_and_elements_are_found),
       T(passwords_in_addresses_are_found), T(keys_and_tokens_are_found))
