/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>

#include "base/number.h"
#include "ops/doctor/doctor.h"

#define GROUP "Storage"

enum { FEW_INODES = 100000 };
#define LITTLE_SPACE (1ull << 30)

static bool is_one_of(const char *type, const char *names)
{
	return probe_has_word(str_of(names), " ", type);
}

static void state_dir(const struct doctor_facts *f, struct checks *l)
{
	const struct probe_storage *s = &f->storage;
	struct check *c;

	if (f->state_err.kind != ERR_NONE || s->scratch < 0) {
		c = check_add(l, GROUP, "state directory", CHECK_MISSING, "%s%s%s", f->state_dir,
			      f->state_dir[0] ? ": " : "",
			      f->state_err.kind ? f->state_err.msg : strerror(-s->scratch));
		c->blocks = true;
		check_fix(c,
			  f->state_err.kind == ERR_NOT_ALLOWED
				  ? "chmod 700 it where it is yours, or export CAY_STATE=DIRECTORY"
				  : "export CAY_STATE=DIRECTORY, an absolute path that you can "
				    "write below");
		return;
	}
	check_add(l, GROUP, "state directory", CHECK_OK, "%s%s", f->state_dir,
		  f->state_exists ? "" : ", made when it is first needed");
}

static void file_system(const struct probe_storage *s, struct checks *l)
{
	bool memory = is_one_of(s->type, "tmpfs ramfs");
	bool network = is_one_of(s->type, "nfs nfs4 cifs smb3 ceph 9p afs fuse.sshfs glusterfs");
	bool full =
		s->free_bytes < LITTLE_SPACE || (s->counts_inodes && s->free_inodes < FEW_INODES);
	char size[NUMBER_TEXT], inodes[48] = "";
	struct check *c;

	if (s->counts_inodes)
		(void)snprintf(inodes, sizeof inodes, " and %llu inodes",
			       (unsigned long long)s->free_inodes);
	c = check_add(
		l, GROUP, "file system", memory || network || full ? CHECK_NOTE : CHECK_OK,
		"%s, %s%s free%s%s", s->type[0] ? s->type : "unknown",
		number_short(s->free_bytes, size), inodes,
		memory	  ? "; in memory: what sandboxes write takes RAM and is gone after a reboot"
		: network ? "; on a network: slow, and overlays may refuse it as upper"
			  : "",
		full ? "; that is little" : "");
	if (memory || network)
		check_fix(c, "export CAY_STATE=DIRECTORY on a local disk");
	else if (full)
		check_fix(c, "cay gc, or export CAY_STATE=DIRECTORY on a larger disk");
}

static void overlay(const struct doctor_facts *f, struct checks *l)
{
	const struct probe_storage *s = &f->storage;
	struct check *c;

	if (s->overlay == PROBE_UNTRIED)
		return;
	if (s->overlay == 0) {
		check_add(l, GROUP, "overlay", CHECK_OK, "works here, with volatile%s%s",
			  s->userxattr == 0 ? ", userxattr" : "",
			  s->metacopy == 0 ? ", metacopy" : "");
		return;
	}
	c = check_add(l, GROUP, "overlay", CHECK_MISSING, "cannot be mounted %s (%s)",
		      s->not_volatile == 0 ? "with the option volatile" : "with its upper here",
		      strerror(-s->overlay));
	c->blocks = true;
	if (s->overlay == -ENODEV)
		check_fix(c, "sudo modprobe overlay");
	else if (doctor_userns(f) != USERNS_OK)
		check_fix(c, "make user namespaces possible first, see above");
	else
		check_fix(c, "export CAY_STATE=DIRECTORY on ext4, xfs, btrfs or tmpfs");
}

static void idmap(const struct doctor_facts *f, struct checks *l)
{
	const struct probe_storage *s = &f->storage;
	struct check *c;

	if (!f->rootful || s->idmap == PROBE_UNTRIED)
		return;
	if (s->idmap == 0) {
		check_add(l, GROUP, "id-mapped mounts", CHECK_OK, "work here");
		return;
	}
	c = check_add(l, GROUP, "id-mapped mounts", CHECK_MISSING, "refused (%s)",
		      strerror(-s->idmap));
	c->blocks = true;
	if (s->idmap == -EINVAL)
		check_fix(c,
			  "export CAY_STATE=DIRECTORY on ext4, xfs, btrfs or tmpfs (from 6.3 on)");
	else
		check_fix(c, "run cay as root of the host, or as an ordinary user");
}

/* Only limits that cay itself uses count, not quotas that the file system could have. */
static void disk_limit(const struct doctor_facts *f, struct checks *l)
{
	bool on_btrfs =
		f->storage.quota == PROBE_QUOTA_BTRFS || f->storage.quota == PROBE_QUOTA_BTRFS_OFF;
	char left[NUMBER_TEXT];
	struct check *c;

	if (f->storage_err.kind != ERR_NONE) {
		c = check_add(l, GROUP, "disk limit", CHECK_MISSING, "%s", f->storage_err.msg);
		check_fix(c, "%s", f->storage_err.hint);
	} else if (f->has_storage && f->own_storage.quota) {
		check_add(l, GROUP, "disk limit", CHECK_OK,
			  "held by the kernel: btrfs storage %.200s, %s free", f->own_storage.path,
			  number_short(f->own_storage.free, left));
	} else {
		c = check_add(l, GROUP, "disk limit", CHECK_NOTE,
			      "what a sandbox writes is watched, not limited by the kernel%s",
			      f->rootful ? "" : ": a quota needs root");
		if (f->rootful && on_btrfs)
			check_fix(c, "sudo cay setup storage DIRECTORY, a new one on this btrfs");
		else if (f->rootful)
			check_fix(c, "sudo cay setup storage");
	}
}

static void extras(const struct doctor_facts *f, struct checks *l)
{
	const struct probe_storage *s = &f->storage;

	if (s->reflink != PROBE_UNTRIED)
		check_add(
			l, GROUP, "reflink", s->reflink == 0 ? CHECK_OK : CHECK_NOTE, "%s",
			s->reflink == 0
				? "works: copies of files share their blocks"
				: "not on this file system: copies of files take space (btrfs and xfs have it)");
	disk_limit(f, l);
}

void checks_storage(const struct doctor_facts *f, struct checks *l)
{
	state_dir(f, l);
	if (f->storage.type[0] || f->storage.free_bytes)
		file_system(&f->storage, l);
	overlay(f, l);
	idmap(f, l);
	if (f->storage.scratch == 0)
		extras(f, l);
}
