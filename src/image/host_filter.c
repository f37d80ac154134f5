/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_filter.h"

#include <fnmatch.h>
#include <stddef.h>

#include "base/cleanup.h"

struct rule {
	const char *pattern; /* of fnmatch; '*' does not match '/' */
	const char *why;
};

#define OURS	 "written anew for the sandbox"
#define IDENTITY "identity of the host"
#define SECRETS	 "may hold secrets"
#define NETWORK	 "network of the host, may hold keys"
#define CLUSTER	 "gives rights over other machines"
#define JOBS	 "jobs of the host"
#define BACKUP	 "backup or leftover"

/* Relative to /etc. A directory takes all below it along. */
static const struct rule paths[] = {
	{ "passwd", OURS },
	{ "group", OURS },
	{ "shadow*", "password hashes" },
	{ "gshadow*", "password hashes" },
	{ "security/opasswd*", "password hashes" },
	{ "sudoers*", OURS },
	{ "dpkg/dpkg.cfg.d/cay-sandbox", OURS },
	{ "doas.conf", "rights of the host's users" },
	{ "subuid*", "id ranges of the host's users" },
	{ "subgid*", "id ranges of the host's users" },
	{ ".pwd.lock", "lock of the host" },
	{ "environment", OURS },
	{ "environment.d", SECRETS },
	{ "machine-id", IDENTITY },
	{ "hostid", IDENTITY },
	{ "hostname", IDENTITY },
	{ "hosts", IDENTITY },
	{ "mailname", IDENTITY },
	{ "resolv.conf", OURS },
	{ "mtab", OURS },
	{ "fstab*", "disks of the host" },
	{ "crypttab*", "disks of the host" },
	{ "iscsi", "disks of the host" },
	{ "cifs*", SECRETS },
	{ "samba", SECRETS },
	{ "ssh/ssh_host_*", IDENTITY },
	{ "ssl/private", "private keys" },
	{ "pki/private", "private keys" },
	{ "pki/*/private", "private keys" },
	{ "letsencrypt", "private keys" },
	{ "krb5.keytab*", "private keys" },
	{ "ldap.secret", SECRETS },
	{ "pam_ldap*", SECRETS },
	{ "nslcd.conf*", SECRETS },
	{ "libnss-ldap*", SECRETS },
	{ "sssd", SECRETS },
	{ "boto.cfg", SECRETS },
	{ "rclone*", SECRETS },
	{ "msmtprc", SECRETS },
	{ "ssmtp", SECRETS },
	{ "exim4/passwd*", SECRETS },
	{ "postfix/sasl*", SECRETS },
	{ "mysql/debian.cnf", SECRETS },
	{ "apt/auth.conf*", SECRETS },
	{ "NetworkManager", NETWORK },
	{ "netplan", NETWORK },
	{ "network", NETWORK },
	{ "systemd/network", NETWORK },
	{ "wpa_supplicant", NETWORK },
	{ "iwd", NETWORK },
	{ "wireguard", NETWORK },
	{ "openvpn", NETWORK },
	{ "ipsec*", NETWORK },
	{ "swanctl", NETWORK },
	{ "strongswan*", NETWORK },
	{ "ppp", NETWORK },
	{ "tailscale", NETWORK },
	{ "cloudflared", NETWORK },
	{ "docker", CLUSTER },
	{ "containerd", CLUSTER },
	{ "kubernetes", CLUSTER },
	{ "rancher", CLUSTER },
	{ "cloud", CLUSTER },
	{ "salt", CLUSTER },
	{ "puppet*", CLUSTER },
	{ "chef", CLUSTER },
	{ "vault*", CLUSTER },
	{ "consul*", CLUSTER },
	{ "nomad*", CLUSTER },
	{ "cron*", JOBS },
	{ "anacrontab", JOBS },
};

/* The last part of the path, at any depth. */
static const struct rule names[] = {
	{ "*.key", "private keys" },
	{ "*.p12", "private keys" },
	{ "*.pfx", "private keys" },
	{ "*.keytab", "private keys" },
	{ "id_rsa*", "private keys" },
	{ "id_ecdsa*", "private keys" },
	{ "id_ed25519*", "private keys" },
	{ "*netrc", SECRETS },
	{ "*pypirc", SECRETS },
	{ ".env", SECRETS },
	{ ".git", "history of files, with those that are private" },
	{ ".hg", "history of files, with those that are private" },
	{ ".bzr", "history of files, with those that are private" },
	{ ".svn", "history of files, with those that are private" },
	{ ".etckeeper", "lists private files" },
	{ "*-", BACKUP },
	{ "*~", BACKUP },
	{ "#*#", BACKUP },
	{ ".#*", BACKUP },
	{ "*.sw[op]", BACKUP },
	{ "*.bak", BACKUP },
	{ "*.backup", BACKUP },
	{ "*.old", BACKUP },
	{ "*.orig", BACKUP },
	{ "*.save", BACKUP },
	{ "*.rpmsave", BACKUP },
	{ "*.rpmnew", BACKUP },
	{ "*.dpkg-*", BACKUP },
	{ "*.ucf-*", BACKUP },
};

/* Where certificates for everybody lie: there *.pem is not a key. */
static const char *const pem_dirs[] = { "ssl/certs/", "ca-certificates/", "pki/ca-trust/" };

/* An error of fnmatch, as over odd bytes, counts as a match: out is the safe side. */
static const char *match(const struct rule *r, size_t n, const char *text)
{
	for (; n > 0; n--, r++)
		if (fnmatch(r->pattern, text, FNM_PATHNAME) != FNM_NOMATCH)
			return r->why;
	return NULL;
}

static bool is_pem_elsewhere(const char *rel, const char *name)
{
	if (fnmatch("*.pem", name, 0) == FNM_NOMATCH)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(pem_dirs); i++)
		if (strncmp(rel, pem_dirs[i], strlen(pem_dirs[i])) == 0)
			return false;
	return true;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

const char *host_filter_path(const char *path)
{
	const char *rel = strncmp(path, "etc/", 4) == 0 ? path + 4 : path;
	const char *why = match(paths, ARRAY_LEN(paths), rel);

	if (why)
		return why;
	if (is_pem_elsewhere(rel, base_name(rel)))
		return "private keys";
	return match(names, ARRAY_LEN(names), base_name(rel));
}

static bool has(struct str content, const char *text)
{
	return content.p && memmem(content.p, content.n, text, strlen(text)) != NULL;
}

/* The user part of an address ends at one of these or never was one. */
static bool ends_authority(char c)
{
	return (unsigned char)c <= ' ' || c == '/' || c == '?' || c == '#' || c == '"' ||
	       c == '\'' || c == '<' || c == '>';
}

/* s begins behind "://". With a password, or a name so long that it is a token. */
static bool is_user_with_secret(struct str s)
{
	enum { TOKEN_MIN = 16 };
	bool colon = false;

	for (size_t i = 0; i < s.n && !ends_authority(s.p[i]); i++) {
		if (s.p[i] == '@')
			return colon || i >= TOKEN_MIN;
		colon |= s.p[i] == ':';
	}
	return false;
}

static bool has_url_with_secret(struct str content)
{
	for (;;) {
		const char *at = content.n ? memmem(content.p, content.n, "://", 3) : NULL;

		if (!at)
			return false;
		content.n -= (size_t)(at + 3 - content.p);
		content.p = at + 3;
		if (is_user_with_secret(content))
			return true;
	}
	return false;
}

static bool is_npm_with_secret(const char *path, struct str content)
{
	const char *name = base_name(path);

	if (!strstr(name, "npmrc") && !strstr(name, "yarnrc"))
		return false;
	return has(content, "_auth") || has(content, "_password") || has(content, "AuthToken") ||
	       has(content, "AuthIdent");
}

const char *host_filter_content(const char *path, struct str content)
{
	if (has(content, "PRIVATE KEY-----"))
		return "holds a private key";
	if (has_url_with_secret(content))
		return "holds an address with a password";
	if (is_npm_with_secret(path, content))
		return "holds a token";
	return NULL;
}
