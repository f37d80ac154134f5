/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tuned for a program that opens the database, writes two small rows and exits:
 *
 * - The write-ahead log is neither checkpointed nor removed when the last user closes it. The next
 *   user reads it completely, so it must stay short: small pages, and a checkpoint at LOG_SOFT
 *   pages. The checkpoint runs at close, after the work. Only a process that writes much without
 *   closing checkpoints earlier, at LOG_HARD.
 * - synchronous is NORMAL: a checkpoint is flushed, a commit is not. After a crash of the machine
 *   the last rows may be missing, but never mixed. FULL only for durable rows.
 */
#include "store/db.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/failpoint.h"
#include "base/random.h"
#include "base/str.h"
#include "store/db_heap.h"

enum {
	PAGE = 1024,
	LOG_SOFT = 100,
	LOG_HARD = 4000,
	BUSY_MS = 10000,
	NAP_US = 200, /* average of the first wait for the lock */
	NAP_LONGEST_US = 5000,
	SYNC_NORMAL = 1,
	SYNC_FULL = 2,
};

/* Each entry brings the schema from version i to i + 1. Never change a released one. */
static const char *const migrations[] = {
	"CREATE TABLE sandboxes("
	" id TEXT PRIMARY KEY NOT NULL,"
	" name TEXT,"
	" template TEXT NOT NULL,"
	" state TEXT NOT NULL,"
	" spec TEXT,"
	" ephemeral INTEGER NOT NULL,"
	" uid_slot INTEGER,"
	" created_ns INTEGER NOT NULL,"
	" indexed INTEGER NOT NULL DEFAULT 0" /* bytes of the trace that are indexed */
	") WITHOUT ROWID;"
	/* Partial indexes: a sandbox without name and slot writes to only one tree. */
	"CREATE UNIQUE INDEX sandbox_names ON sandboxes(name) WHERE name IS NOT NULL;"
	"CREATE UNIQUE INDEX sandbox_slots ON sandboxes(uid_slot) WHERE uid_slot IS NOT NULL;"
	"CREATE TABLE calls("
	" sandbox TEXT NOT NULL,"
	" call INTEGER NOT NULL,"
	" call_id TEXT NOT NULL DEFAULT '',"
	" argv TEXT NOT NULL DEFAULT '[]',"
	" labels TEXT,"
	" start_ns INTEGER NOT NULL DEFAULT 0,"
	" duration_us INTEGER NOT NULL DEFAULT -1,"
	" status INTEGER NOT NULL DEFAULT 0,"
	" reason TEXT NOT NULL DEFAULT '',"
	" out_bytes INTEGER NOT NULL DEFAULT 0,"
	" err_bytes INTEGER NOT NULL DEFAULT 0,"
	" PRIMARY KEY(sandbox, call)"
	") WITHOUT ROWID;"
	"CREATE TABLE templates("
	" name TEXT PRIMARY KEY NOT NULL,"
	" kind TEXT NOT NULL,"
	" noted_ns INTEGER NOT NULL"
	") WITHOUT ROWID;",
	/*
	 * store/snapshots.h. Recipes have their own table: sandbox rows are read often, recipes
	 * rarely.
	 */
	"ALTER TABLE sandboxes ADD COLUMN top TEXT;"
	"CREATE TABLE recipes("
	" id TEXT PRIMARY KEY NOT NULL," /* of the sandbox, which may be gone */
	" body BLOB NOT NULL,"
	" template TEXT NOT NULL,"
	" spec TEXT"
	") WITHOUT ROWID;"
	"CREATE TABLE layers("
	" id TEXT PRIMARY KEY NOT NULL,"
	" parent TEXT,"
	" level INTEGER NOT NULL DEFAULT 0," /* how often it was flattened */
	" created_ns INTEGER NOT NULL"
	") WITHOUT ROWID;"
	"CREATE INDEX layer_parents ON layers(parent) WHERE parent IS NOT NULL;"
	"CREATE INDEX sandbox_tops ON sandboxes(top) WHERE top IS NOT NULL;"
	"CREATE TABLE snapshots("
	" id TEXT PRIMARY KEY NOT NULL,"
	" name TEXT,"
	" note TEXT,"
	" kind INTEGER NOT NULL,"
	" sandbox TEXT NOT NULL,"
	" top TEXT,"
	" created_ns INTEGER NOT NULL"
	") WITHOUT ROWID;"
	"CREATE UNIQUE INDEX snapshot_names ON snapshots(name) WHERE name IS NOT NULL;"
	"CREATE INDEX snapshot_boxes ON snapshots(sandbox, created_ns);"
	"CREATE INDEX snapshot_tops ON snapshots(top) WHERE top IS NOT NULL;"
	/* Layers that a sandbox has mounted although its stack now has others in their place. */
	"CREATE TABLE uses(sandbox TEXT NOT NULL, layer TEXT NOT NULL,"
	" PRIMARY KEY(sandbox, layer)) WITHOUT ROWID;"
	"CREATE INDEX uses_layers ON uses(layer);"
	"CREATE TABLE operations("
	" sandbox TEXT PRIMARY KEY NOT NULL,"
	" kind INTEGER NOT NULL,"
	" layer TEXT,"
	" snapshot TEXT,"
	" name TEXT,"
	" note TEXT,"
	" snapshot_kind INTEGER NOT NULL"
	") WITHOUT ROWID;",
	/* store/pools.h */
	"CREATE TABLE pools("
	" template TEXT NOT NULL,"
	" options TEXT NOT NULL,"
	" snapshot TEXT NOT NULL,"
	" recipe BLOB NOT NULL,"
	" wanted INTEGER NOT NULL,"
	" claimed INTEGER NOT NULL DEFAULT 0,"
	" key TEXT NOT NULL DEFAULT '',"
	" problem TEXT NOT NULL DEFAULT '',"
	" PRIMARY KEY(template, options)"
	") WITHOUT ROWID;",
	/* store/keys.h. The owner of a sandbox is the id of the key that made it. */
	"ALTER TABLE sandboxes ADD COLUMN owner TEXT;"
	"CREATE INDEX sandbox_owners ON sandboxes(owner) WHERE owner IS NOT NULL;"
	"CREATE TABLE keys("
	" id TEXT PRIMARY KEY NOT NULL,"
	" digest BLOB NOT NULL UNIQUE," /* SHA-256 of the key */
	" name TEXT NOT NULL UNIQUE,"
	" shown TEXT NOT NULL," /* the first characters, for people */
	" created_ns INTEGER NOT NULL"
	") WITHOUT ROWID;",
	/* A fork belongs to the owner of its source, also where that is gone. */
	"ALTER TABLE recipes ADD COLUMN owner TEXT;"
	"UPDATE recipes SET owner = (SELECT owner FROM sandboxes WHERE id = recipes.id);",
	/* store/requests.h. owner is empty for the host's user. */
	"CREATE TABLE requests("
	" owner TEXT NOT NULL,"
	" key TEXT NOT NULL,"
	" n INTEGER NOT NULL,"
	" hash BLOB NOT NULL,"
	" sandbox TEXT NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" PRIMARY KEY(owner, key, n)"
	") WITHOUT ROWID;"
	"CREATE INDEX request_boxes ON requests(sandbox);"
	"CREATE INDEX request_ages ON requests(created_ns);",
	/* store/secrets.h. The owner is the id of a key, or empty. */
	"CREATE TABLE secrets("
	" id TEXT PRIMARY KEY NOT NULL,"
	" owner TEXT NOT NULL,"
	" name TEXT NOT NULL,"
	" value BLOB NOT NULL,"
	" metadata TEXT NOT NULL,"
	" version INTEGER NOT NULL,"
	" created_ns INTEGER NOT NULL,"
	" updated_ns INTEGER NOT NULL,"
	" UNIQUE(owner, name)"
	") WITHOUT ROWID;",
	/* store/key_limits.h. Of a sandbox: what its key's quotas count; null: without a limit. */
	"ALTER TABLE sandboxes ADD COLUMN memory INTEGER;"
	"ALTER TABLE sandboxes ADD COLUMN cpu_milli INTEGER;"
	"ALTER TABLE keys ADD COLUMN limits TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE keys ADD COLUMN owner TEXT;" /* of its sandboxes; null: the key itself */
	"ALTER TABLE keys ADD COLUMN expires_ns INTEGER NOT NULL DEFAULT 0;"
	"CREATE TABLE settings(name TEXT PRIMARY KEY NOT NULL, value TEXT NOT NULL) WITHOUT ROWID;",
};

enum { VERSION = ARRAY_LEN(migrations) };

/* SQLite retries read-only, and then reports why that failed. */
static int why_not_writable(const struct catalog *c, int sys)
{
	char dir[sizeof c->path];

	if (euidaccess(c->path, W_OK) == 0)
		return sys ? sys : EIO;
	if (errno != ENOENT)
		return errno;
	(void)str_copy(dir, sizeof dir,
		       (struct str){ c->path, (size_t)(strrchr(c->path, '/') - c->path) });
	return euidaccess(dir, W_OK | X_OK) == 0 ? ENOENT : errno;
}

int db_fail(struct catalog *c, int rc, struct err *e)
{
	int sys = c->db ? sqlite3_system_errno(c->db) : 0;

	switch (rc & 0xff) {
	case SQLITE_FULL:
		return err_sys(e, ENOSPC, "cannot write the catalog %s", c->path);
	case SQLITE_NOMEM:
		return err_sys(e, ENOMEM, "cannot use the catalog %s", c->path);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		err_set(e, ERR_TIMEOUT, "another process has held the catalog %s for %d s", c->path,
			BUSY_MS / 1000);
		return err_hint(e, "see who: fuser -v %.200s", c->path);
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		err_set(e, ERR_FAILED, "the catalog %s is damaged: %s", c->path,
			c->db ? sqlite3_errmsg(c->db) : sqlite3_errstr(rc));
		return err_hint(
			e, "move its whole directory away to keep the files and begin anew, or "
			   "restore the catalog (sqlite3 catalog.db .recover)");
	case SQLITE_READONLY:
	case SQLITE_CANTOPEN:
	case SQLITE_PERM:
		err_sys(e, why_not_writable(c, sys), "cannot open the catalog %s for writing",
			c->path);
		return err_hint(e, "set CAY_STATE to a directory of your own that can be written");
	case SQLITE_IOERR:
		return err_sys(e, sys ? sys : EIO, "cannot use the catalog %s", c->path);
	default:
		return err_set(e, ERR_FAILED, "catalog %s: %s", c->path,
			       c->db ? sqlite3_errmsg(c->db) : sqlite3_errstr(rc));
	}
}

/* SQLite's own waits are whole milliseconds, and all processes wait in step. */
static int busy(void *ctx, int count)
{
	struct catalog *c = ctx;
	uint64_t now = clock_mono_ns();
	long us = (long)NAP_US * (count < 5 ? 1 << count : 32);
	struct timespec t = { 0 };
	uint32_t r = 0;

	if (count == 0)
		c->busy_until = now + BUSY_MS * NS_PER_MS;
	if (now >= c->busy_until)
		return 0;
	if (us > NAP_LONGEST_US)
		us = NAP_LONGEST_US;
	if (random_bytes(&r, sizeof r) < 0)
		r = 1u << 31;
	/* Between 0.5 and 1.5 times as long. */
	t.tv_nsec = us * 500 + (long)((uint64_t)us * 1000 * r >> 32);
	(void)nanosleep(&t, NULL);
	return 1;
}

static int on_commit(void *ctx, sqlite3 *db, const char *name, int frames)
{
	struct catalog *c = ctx;

	c->frames = frames;
	if (frames >= LOG_HARD)
		(void)sqlite3_wal_checkpoint_v2(db, name, SQLITE_CHECKPOINT_PASSIVE, NULL,
						&c->frames);
	return SQLITE_OK;
}

static int bind_all(sqlite3_stmt *q, const char *kinds, va_list ap)
{
	int rc = SQLITE_OK;

	for (int i = 0; kinds[i] && rc == SQLITE_OK; i++) {
		const char *text;
		struct str bytes;

		switch (kinds[i]) {
		case 't':
			text = va_arg(ap, const char *);
			rc = text ? sqlite3_bind_text(q, i + 1, text, -1, SQLITE_STATIC)
				  : SQLITE_OK;
			break;
		case 'b':
			bytes = va_arg(ap, struct str);
			rc = sqlite3_bind_blob64(q, i + 1, bytes.p ? bytes.p : "", bytes.n,
						 SQLITE_STATIC);
			break;
		default:
			rc = sqlite3_bind_int64(q, i + 1, va_arg(ap, int64_t));
			break;
		}
	}
	return rc;
}

static int query(struct catalog *c, sqlite3_stmt **ret, struct err *e, const char *sql,
		 const char *kinds, va_list ap)
{
	sqlite3_stmt *q = NULL;
	int rc = db_compile(c->db, sql, &q);

	if (rc == SQLITE_OK)
		rc = bind_all(q, kinds, ap);
	if (rc == SQLITE_OK) {
		*ret = q;
		return 0;
	}
	(void)db_fail(c, rc, e);
	db_finalize(q);
	return -1;
}

int db_query(struct catalog *c, sqlite3_stmt **ret, struct err *e, const char *sql,
	     const char *kinds, ...)
{
	va_list ap;
	int r;

	va_start(ap, kinds);
	r = query(c, ret, e, sql, kinds, ap);
	va_end(ap);
	return r;
}

int db_step(struct catalog *c, sqlite3_stmt *q, struct err *e)
{
	int rc = sqlite3_step(q);

	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : db_fail(c, rc, e);
}

int db_do(struct catalog *c, struct err *e, const char *sql, const char *kinds, ...)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;
	va_list ap;
	int r;

	va_start(ap, kinds);
	r = query(c, &q, e, sql, kinds, ap);
	va_end(ap);
	return r < 0 || db_step(c, q, e) < 0 ? -1 : 0;
}

int db_begin(struct catalog *c, bool durable, struct err *e)
{
	int sync = durable ? SYNC_FULL : SYNC_NORMAL;

	if (c->batch)
		return 0;
	/* The pragma has no effect within a transaction. */
	if (c->sync != sync) {
		if (db_do(c, e, durable ? "PRAGMA synchronous = 2" : "PRAGMA synchronous = 1", "") <
		    0)
			return -1;
		c->sync = sync;
	}
	return db_do(c, e, "BEGIN IMMEDIATE", "");
}

static void commit_failpoint(const char *who, const char *when)
{
	char name[64];

	(void)snprintf(name, sizeof name, "%s.%s", who, when);
	failpoint(name);
}

int db_end_named(struct catalog *c, int r, struct err *e, const char *who)
{
	struct err ignored;

	if (c->batch)
		return r < 0 ? -1 : 0;
	if (r == 0) {
		commit_failpoint(who, "commits");
		r = db_do(c, e, "COMMIT", "");
		commit_failpoint(who, "committed");
	}
	/* Some failures, such as a full disk, have already rolled back. */
	if (r < 0 && !sqlite3_get_autocommit(c->db))
		(void)db_do(c, &ignored, "ROLLBACK", "");
	return r < 0 ? -1 : 0;
}

int catalog_batch_begin(struct catalog *c, struct err *e)
{
	if (db_begin(c, true, e) < 0)
		return -1;
	c->batch = true;
	return 0;
}

int catalog_batch_end(struct catalog *c, int r, struct err *e)
{
	c->batch = false;
	return db_end(c, r, e);
}

void db_text(sqlite3_stmt *q, int i, char *dst, size_t size)
{
	const unsigned char *t = sqlite3_column_text(q, i);

	(void)snprintf(dst, size, "%s", t ? (const char *)t : "");
}

int db_text_dup(sqlite3_stmt *q, int i, char **ret, struct err *e)
{
	const unsigned char *t = sqlite3_column_text(q, i);
	char *copy = t ? strdup((const char *)t) : NULL;

	if (t && !copy)
		return err_sys(e, ENOMEM, "cannot read the catalog");
	*ret = copy;
	return 0;
}

static int read_version(struct catalog *c, int64_t *ret, struct err *e)
{
	auto_done(db_finalize) sqlite3_stmt *q = NULL;

	if (db_query(c, &q, e, "PRAGMA user_version", "") < 0 || db_step(c, q, e) < 0)
		return -1;
	*ret = sqlite3_column_int64(q, 0);
	return 0;
}

static int refuse_newer(struct catalog *c, int64_t have, struct err *e)
{
	err_set(e, ERR_FAILED, "the catalog %s has version %lld, this program knows up to %d",
		c->path, (long long)have, VERSION);
	return err_hint(e, "it was used by a newer cay: use that one, or another CAY_STATE");
}

static int migrate(struct catalog *c, struct err *e)
{
	char set[64];
	int64_t have = 0;

	/* Another process may have done it while we waited for the lock. */
	if (read_version(c, &have, e) < 0)
		return -1;
	if (have > VERSION)
		return refuse_newer(c, have, e);
	for (int64_t i = have; i < VERSION; i++) {
		int rc = sqlite3_exec(c->db, migrations[i], NULL, NULL, NULL);

		if (rc != SQLITE_OK)
			return db_fail(c, rc, e);
	}
	(void)snprintf(set, sizeof set, "PRAGMA user_version = %d", VERSION);
	return db_do(c, e, set, "");
}

/* The change to WAL fails instead of waiting for others: so we wait. */
static int set_wal(struct catalog *c, struct err *e)
{
	int rc, count = 0;

	do
		rc = sqlite3_exec(c->db, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
	while ((rc & 0xff) == SQLITE_BUSY && busy(c, count++));
	return rc == SQLITE_OK ? 0 : db_fail(c, rc, e);
}

static int bring_up_to_date(struct catalog *c, struct err *e)
{
	char set[64];
	int64_t have = 0;

	if (read_version(c, &have, e) < 0)
		return -1;
	if (have == VERSION)
		return 0;
	if (have > VERSION)
		return refuse_newer(c, have, e);
	/* Only affects an empty database. */
	(void)snprintf(set, sizeof set, "PRAGMA page_size = %d", PAGE);
	if (db_do(c, e, set, "") < 0 || set_wal(c, e) < 0 || db_begin(c, true, e) < 0)
		return -1;
	return db_end(c, migrate(c, e), e);
}

static void configure_library(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	/* Each fails, and changes nothing, if the library was used before. */
	(void)sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
	(void)sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
#ifndef CAY_SANITIZED
	(void)sqlite3_config(SQLITE_CONFIG_MALLOC, &db_heap);
#endif
}

static int set_up(struct catalog *c, struct err *e)
{
	int on = 1;
	int rc = sqlite3_open_v2(c->path, &c->db,
				 SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
					 SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_EXRESCODE,
				 NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_busy_handler(c->db, busy, c);
	if (rc == SQLITE_OK)
		rc = sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_file_control(c->db, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
	if (rc != SQLITE_OK)
		return db_fail(c, rc, e);
	(void)sqlite3_wal_hook(c->db, on_commit, c);
	return bring_up_to_date(c, e);
}

/* We create it, because SQLite would apply the umask to it and its log. */
static int close_to_others(const struct state *s, struct err *e)
{
	static const char *const names[] = { "catalog.db", "catalog.db-wal", "catalog.db-shm" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int r = state_private_file(s, names[i], i == 0);

		/* SQLite gives a better reason why no file can be made here. */
		if (r < 0 && r != -EACCES && r != -EROFS && r != -ENOSPC && r != -EDQUOT)
			return err_sys(e, -r, "cannot close %s/%s to others", s->dir, names[i]);
	}
	return 0;
}

int catalog_open(const struct state *s, struct catalog **ret, struct err *e)
{
	struct catalog *c;

	if (close_to_others(s, e) < 0)
		return -1;
	c = calloc(1, sizeof *c);
	if (!c)
		return err_sys(e, ENOMEM, "cannot open the catalog");
	configure_library();
	c->sync = -1;
	c->state_fd = s->fd;
	(void)snprintf(c->path, sizeof c->path, "%s/catalog.db", s->dir);
	if (set_up(c, e) < 0) {
		catalog_close(c);
		return -1;
	}
	*ret = c;
	return 0;
}

/*
 * Only an empty log is short for the next user: shared memory alone records how much was copied,
 * and it does not outlast its users. If others use the database, the last one of them does this.
 */
static void empty_log(struct catalog *c)
{
	(void)sqlite3_busy_handler(c->db, NULL, NULL);
	(void)sqlite3_wal_checkpoint_v2(c->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
}

void catalog_close(struct catalog *c)
{
	if (!c)
		return;
	if (c->frames >= LOG_SOFT)
		empty_log(c);
	db_keep_none(c->db);
	(void)sqlite3_close(c->db);
	free(c);
}
