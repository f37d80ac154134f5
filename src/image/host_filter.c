/* SPDX-License-Identifier: Apache-2.0 */
#include "image/host_filter.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/limits.h"

struct rule {
	const char *pattern; /* for fnmatch; '*' does not match '/' */
	const char *why;
};

#define OURS	 "written anew for the sandbox"
#define IDENTITY "identity of the host"
#define SECRETS	 "may hold secrets"
#define NETWORK	 "network of the host, may hold keys"
#define CLUSTER	 "gives rights over other machines"
#define JOBS	 "jobs of the host"
#define BACKUP	 "backup or leftover"

/*
 * What a developer's machine needs from /etc, relative to /etc. A directory includes everything
 * below it, except what the rules below exclude. The host's services, users and hardware are not
 * here.
 */
static const char *const listed[] = {
	/* accounts, sessions and the terminal */
	"adduser.conf",
	"deluser.conf",
	"login.defs",
	"shells",
	"skel",
	"pam.conf",
	"pam.d",
	"security",
	"sudo.conf",
	"default/locale",
	"default/useradd",
	"default/keyboard",
	"default/cacerts",
	"default/nss",
	"securetty",
	"selinux",
	"bash.bashrc",
	"bashrc",
	"bash_completion",
	"bash_completion.d",
	"profile",
	"profile.d",
	"csh.*",
	"zsh*",
	"zlog*",
	"zprofile",
	"fish",
	"inputrc",
	"terminfo",
	"motd",
	"issue*",
	"screenrc",
	"tmux.conf",
	"DIR_COLORS*",
	"nanorc",
	"vim",
	"emacs",
	"less*",
	/* which system it is */
	"os-release",
	"lsb-release*",
	"debian_version",
	"*-release",
	"dpkg",
	"apt",
	"ucf.conf",
	"debconf.conf",
	"alternatives",
	"rpm",
	"yum*",
	"dnf",
	"zypp",
	"apk",
	"pacman*",
	"makepkg.conf",
	"init.d",
	"rc?.d",
	"kernel",
	"dbus-1",
	"rmt",
	"mke2fs.conf",
	"xattr.conf",
	"libaudit.conf",
	/* libraries */
	"ld.so.*",
	"ld-musl-*",
	"nsswitch.conf",
	"gai.conf",
	"host.conf",
	"locale.*",
	"localtime",
	"timezone",
	"adjtime",
	"magic*",
	"mime.types",
	"mailcap*",
	"fonts",
	"X11",
	"xdg",
	"dconf",
	"gtk-*",
	"glvnd",
	"vulkan",
	"OpenCL",
	"alsa",
	"pulse",
	"openal",
	"ImageMagick*",
	"gss",
	"krb5.conf*",
	"ldap/ldap.conf",
	"libnl*",
	"netconfig",
	"odbcinst.ini",
	"sgml",
	"xml",
	"texmf",
	/* the network */
	"services",
	"protocols",
	"networks",
	"ethertypes",
	"rpc",
	"bindresvport.blacklist",
	"iproute2",
	"ssh/ssh_config*",
	"ssh/moduli",
	"wgetrc",
	"w3m",
	"lynx",
	"chromium*",
	/* public certificates */
	"ssl",
	"ca-certificates*",
	"pki",
	"pkcs11",
	"crypto-policies",
	"gnutls",
	/* languages and tools */
	"java*",
	".java",
	"jvm*",
	"maven",
	"gradle",
	"ant*",
	"scala",
	"mono",
	"dotnet",
	"python*",
	"pip.conf",
	"perl",
	"php",
	"ruby*",
	"gemrc",
	"npmrc",
	"nodejs",
	"R",
	"julia",
	"erlang",
	"ghc",
	"ocaml",
	"emscripten*",
	"gitconfig",
	"gitattributes",
	"mercurial",
	"subversion",
	"ccache.conf",
	"gdb",
	"debuginfod",
	"gprofng.rc",
	"groff",
	"manpath.config",
	"man_db.conf",
	"nix",
	"guix",
	"postgresql-common",
	"colordiffrc",
};

/*
 * Relative to /etc: exclusions from the listed directories, and paths with a better reason than
 * "not listed". A directory includes everything below it.
 */
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
	{ "php/*/fpm", SECRETS },
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

/* The last component of a path, at any depth, in /etc and where people install by hand. */
static const struct rule secrets[] = {
	{ "*.key", "private keys" },
	{ "*.p12", "private keys" },
	{ "*.pfx", "private keys" },
	{ "*.ppk", "private keys" },
	{ "*.jks", "private keys" },
	{ "*.keystore", "private keys" },
	{ "*.keytab", "private keys" },
	{ "*.kdbx", "private keys" },
	{ "*.ovpn", "private keys" },
	{ "id_rsa*", "private keys" },
	{ "id_dsa*", "private keys" },
	{ "id_ecdsa*", "private keys" },
	{ "id_ed25519*", "private keys" },
	{ ".ssh", "private keys" },
	{ ".gnupg", "private keys" },
	{ "*netrc", SECRETS },
	{ "*pypirc", SECRETS },
	{ ".env", SECRETS },
	{ ".env.*", SECRETS },
	{ ".envrc", SECRETS },
	{ ".aws", SECRETS },
	{ ".azure", SECRETS },
	{ ".kube", SECRETS },
	{ ".docker", SECRETS },
	{ ".boto", SECRETS },
	{ ".s3cfg", SECRETS },
	{ ".pgpass", SECRETS },
	{ ".my.cnf", SECRETS },
	{ ".mylogin.cnf", SECRETS },
	{ ".git-credentials", SECRETS },
	{ ".vault-token", SECRETS },
	{ ".htpasswd*", "password hashes" },
	{ "*.htpasswd", "password hashes" },
	{ ".*_history", "commands that people typed" },
};

/* The same, in /etc only. */
static const struct rule names[] = {
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

/* Directories of public certificates: there, *.pem is not a key. */
static const char *const pem_dirs[] = { "ssl/certs/", "ca-certificates/", "pki/ca-trust/" };

/*
 * fnmatch() takes a microsecond, and /opt may have millions of files. Most patterns are a name, or
 * one with a '*' at either end. An error of fnmatch, such as for odd bytes, counts as a match:
 * leaving a file out is the safe side.
 */
static bool fits(const char *pattern, const char *name)
{
	const char *star = strchr(pattern, '*');
	size_t n = strlen(pattern), len = strlen(name);

	if (strpbrk(pattern, "[?/") || strchr(name, '/') || (star && strchr(star + 1, '*')))
		return fnmatch(pattern, name, FNM_PATHNAME) != FNM_NOMATCH;
	if (!star)
		return strcmp(pattern, name) == 0;
	if (star == pattern)
		return len >= n - 1 && strcmp(name + len - (n - 1), pattern + 1) == 0;
	if (star[1] == '\0')
		return strncmp(name, pattern, n - 1) == 0;
	return fnmatch(pattern, name, FNM_PATHNAME) != FNM_NOMATCH;
}

static const char *match(const struct rule *r, size_t n, const char *text)
{
	for (; n > 0; n--, r++)
		if (fits(r->pattern, text))
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

/* The first n components of a path. */
static bool first_parts(const char *path, int n, char out[LIMIT_PATH])
{
	size_t len = 0;

	for (; n > 0 && path[len]; n--)
		len += strcspn(path + len, "/") + (n > 1 && strchr(path + len, '/'));
	return str_copy(out, LIMIT_PATH, (struct str){ path, len });
}

static int parts(const char *path)
{
	int n = 1;

	for (; (path = strchr(path, '/')); path++)
		n++;
	return n;
}

/* On the list, below a listed directory, or a parent of one. */
static bool is_listed(const char *rel)
{
	char head[LIMIT_PATH], pattern[LIMIT_PATH];
	int depth = parts(rel);

	for (size_t i = 0; i < ARRAY_LEN(listed); i++) {
		int n = parts(listed[i]) < depth ? parts(listed[i]) : depth;

		if (first_parts(rel, n, head) && first_parts(listed[i], n, pattern) &&
		    fnmatch(pattern, head, FNM_PATHNAME) == 0)
			return true;
	}
	return false;
}

const char *host_filter_path(const char *path)
{
	const char *rel = strncmp(path, "etc/", 4) == 0 ? path + 4 : path;
	const char *why = match(paths, ARRAY_LEN(paths), rel);

	if (!why && !is_listed(rel))
		why = "not listed";
	if (!why && is_pem_elsewhere(rel, base_name(rel)))
		why = "private keys";
	if (!why)
		why = match(secrets, ARRAY_LEN(secrets), base_name(rel));
	return why ? why : match(names, ARRAY_LEN(names), base_name(rel));
}

/* True if the name ends in one of these. */
static bool ends_in(const char *const *ends, size_t n, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < n; i++) {
		size_t end = strlen(ends[i]);

		if (len >= end && strcasecmp(name + len - end, ends[i]) == 0)
			return true;
	}
	return false;
}

const char *host_filter_local(const char *path)
{
	static const char *const examples[] = { ".example", ".sample", ".template", ".dist" };
	const char *name = base_name(path), *why = match(secrets, ARRAY_LEN(secrets), name);

	return why && ends_in(examples, ARRAY_LEN(examples), name) ? NULL : why;
}

/* Language packages: thousands of files from a public place. */
static bool is_in_package(const char *path)
{
	static const char *const dirs[] = { "/node_modules/", "/site-packages/", "/dist-packages/",
					    "/testdata/", "/gems/" };

	for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
		if (strstr(path, dirs[i]))
			return true;
	return false;
}

bool host_filter_reads(const char *path)
{
	static const char *const settings[] = { ".conf", ".cfg",	".cnf",	    ".ini",
						".json", ".properties", ".service", ".toml",
						".xml",	 ".yaml",	".yml",	    ".env",
						"npmrc", "yarnrc",	".sh" };
	static const char *const certificate[] = { ".pem" };
	const char *name = base_name(path);

	if (ends_in(certificate, 1, name))
		return true;
	if (strcmp(name, "config") == 0 && strstr(path, ".git/config"))
		return true;
	return ends_in(settings, ARRAY_LEN(settings), name) && !is_in_package(path);
}

static bool has_word(const char *name)
{
	static const char *const words[] = { "secret",	"passw",       "credential",
					     "token",	"apikey",      "api_key",
					     "api-key", "private-key", "private_key" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

bool host_filter_suspect(const char *path)
{
	static const char *const kinds[] = { ".txt",  ".json",	     ".conf", ".cfg",  ".cnf",
					     ".ini",  ".env",	     ".xml",  ".yaml", ".yml",
					     ".toml", ".properties", ".pem" };
	const char *name = base_name(path);

	/*
	 * Programs and libraries have such words in their names too, but other endings than
	 * settings.
	 */
	return has_word(name) &&
	       (!strchr(name + 1, '.') || ends_in(kinds, ARRAY_LEN(kinds), name)) &&
	       !is_in_package(path) && !strstr(path, "/src/") && !strstr(path, "/share/");
}
