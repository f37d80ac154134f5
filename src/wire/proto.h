/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of both protocols: frame types, field tags, and nothing else.
 * docs/protocol.md describes their use.
 *
 * In the init protocol (warden <-> init) a channel is the warden's number of a call. In the client
 * protocol (client <-> warden) it is the client's number of a call. Channel 0 is the sandbox.
 */
#pragma once

#include <stdint.h>

/* Environment of a warden. It needs them to clean up if its creator dies early. */
#define WARDEN_ENV_ID	   "CAY_SANDBOX"
#define WARDEN_ENV_PROGRAM "CAY_PROGRAM"

enum {
	PROTO_INIT_VERSION = 1,
	PROTO_CLIENT_VERSION = 3,
	PROTO_CLIENT_OLDEST = 2, /* oldest version that both sides still support */
};

/*
 * Frame types. Below 64: init protocol. From 64 on: client protocol.
 *
 * scripts/proto-tables generates the tables of docs/protocol.md and the numbers of the Python
 * tests from these lines: sender | channel | fields | meaning.
 */
/* clang-format off */
enum msg {
	/* init protocol */
	MSG_HELLO = 1, /* init | 0 | VERSION | init runs; the warden ends the sandbox if the version differs */
	MSG_RUN = 2, /* warden | call | OP TTY MODE PROFILE FDS TRACE CWD USER PATH OFFSET LENGTH FILES DISK MEMORY PIDS ARG* ENV* and descriptors | start a call */
	MSG_SIGNAL = 3, /* warden | call, 0 | SIGNAL | signal the call's process group; ignored if the call has ended. Channel 0: every process but init */
	MSG_STOP = 4, /* warden | 0 | | exit; the kernel then kills every process inside */
	MSG_ENTER = 5, /* warden | 0 | two descriptors | enter the mount namespace and root of the next generation */
	MSG_DIAL = 8, /* warden | a number | PORT | connect to this port of the loopback device inside */
	MSG_STAND_BY = 9, /* warden | of a future call | PROFILE TRACE USER FDS FILES DISK MEMORY PIDS and descriptors | make a spare: a child that waits for its RUN */
	MSG_STDIN = 10, /* warden | call, or of the DIAL | raw bytes | input, within the credit. This message and the next six exist only where no descriptors pass */
	MSG_STDIN_EOF = 11, /* warden | call, or of the DIAL | | no more input comes */
	MSG_RESIZE = 12, /* warden | call | ROWS COLS | the size of its terminal */
	MSG_CREDIT = 13, /* both | call, or of the DIAL | BYTES | so many bytes were passed on; each direction begins with 256 KiB */
	MSG_PREPARE = 14, /* warden | 0 | PID FLAGS DIRFD* PATH* | a thread waits in a rename: DIRFD and PATH of both sides. Make directories of a lower layer renameable; one order at a time */
	MSG_STARTED = 16, /* init | call | PID | the process exists; PID inside the sandbox */
	MSG_FAILED = 17, /* init | call | STAGE ERRNO TEXT | the command did not start; TEXT names what failed */
	MSG_EXITED = 18, /* init | call | STATUS CPU_US MAXRSS_KB | the call's own process ended; STATUS as from wait(2) */
	MSG_REAPED = 19, /* init | 0 | PID STATUS | an orphan that init reaped */
	MSG_ENTERED = 20, /* init | 0 | ERRNO | 0; or EBUSY: other processes exist and nothing changed */
	MSG_DIALED = 24, /* init | of the DIAL | ERRNO, or one descriptor | the connected socket; the warden checks that it is TCP */
	MSG_STDOUT = 25, /* init | call, or of the DIAL | raw bytes | output, within the credit */
	MSG_STDERR = 26, /* init | call | raw bytes | as STDOUT, whose credit it shares */
	MSG_END = 27, /* both | of the DIAL | | from init: the other end sends no more; from the warden: close the connection */
	MSG_PREPARED = 28, /* init | 0 | ERRNO | the order PREPARE is done, or failed. ENOTEMPTY becomes the answer to the rename; otherwise the kernel does the rename */

	/* client protocol: requests */
	MSG_C_HELLO = 64, /* both | 0 | VERSION NEWEST | the client's first frame: the oldest and newest version that it speaks. From version 3 on the warden's first frame answers with VERSION, which both then use */
	MSG_C_BUILD = 65, /* creator | 0 | ID NAME HOSTNAME PATH PROGRAM TEXT CWD USER ENV* LABEL* EPHEMERAL UID_BASE TRACE PROFILE NESTED DISK_PATH MOUNT* LAYER* MEMORY CPU_MILLI PIDS FILES DISK TIMEOUT_MS TTL_MS IDLE_MS ON_TIMEOUT BEST_EFFORT READY_DIR NET_POLICY NAMESERVER* PROXY NO_PROXY | create the sandbox; the first request, once; answered by C_READY */
	MSG_C_EXEC = 66, /* client | call | OP ARG* ENV* CWD USER PATH OFFSET LENGTH MODE TTY ROWS COLS CALL_ID LABEL* TIMEOUT_MS FINAL CALL_MEMORY BEST_EFFORT WINDOW DETACHED IDEMPOTENT RETAIN | start a call */
	MSG_C_STDIN = 67, /* client | call | raw bytes | */
	MSG_C_STDIN_EOF = 68, /* client | call | | */
	MSG_C_SIGNAL = 69, /* client | call | SIGNAL | */
	MSG_C_RESIZE = 70, /* client | call | ROWS COLS | */
	MSG_C_PS = 71, /* client | any | | list the processes: C_PROCESS each, then C_END */
	MSG_C_INFO = 72, /* client | any | | answered by C_STATE */
	MSG_C_SETTLE = 73, /* client | any | | answered by C_SETTLED when the trace holds every event so far */
	MSG_C_DESTROY = 74, /* client | any | REASON READY_DIR | end the sandbox; answered by C_DESTROYED */
	MSG_C_SWITCH = 75, /* client | any | SEAL LAYER* FORCE CALLS SNAPSHOT NAME | switch to the next generation. With SEAL the uppers become that layer; without it they are dropped. With CALLS, which must be 0, the warden refuses while calls run. Needs the lease */
	MSG_C_LEASE = 77, /* client | any | TIMEOUT_MS | ask for the right to change the sandbox as a whole; answered by C_LEASED in order of request, or by C_ERROR after TIMEOUT_MS */
	MSG_C_LEASE_END = 78, /* client | any | | return the lease, or stop waiting for it; not answered */
	MSG_C_PING = 79, /* client | any | | answered by C_PONG */
	MSG_C_POLICY = 80, /* client | any | NET_POLICY | replace the policy with this compiled one; answered by C_POLICY_SET. Needs the lease */
	MSG_C_NET = 81, /* client | any | | list the open connections: C_FLOW each, then C_END */
	MSG_C_DIAL = 82, /* client | any | PORT | connect to a port inside; answered by C_DIALED */
	MSG_C_PAUSE = 84, /* client | any | | stop everything inside; answered by C_STATE, also if it is already paused. Needs the lease */
	MSG_C_RESUME = 85, /* client | any | | continue; answered by C_STATE, also if it already runs */
	MSG_C_EXTEND = 86, /* client | any | TTL_MS, or EXPIRES_AT_MS | time to live from now, or the end time; 0: no limit. Answered by C_STATE */
	MSG_C_KEEP = 88, /* creator | 0 | | the sandbox is in the catalog and may outlive its creator */
	MSG_C_CLAIM = 90, /* client | 0 | READY_DIR EPHEMERAL TEXT NAME HOSTNAME CWD USER ENV* LABEL* TIMEOUT_MS TTL_MS IDLE_MS ON_TIMEOUT | claim a ready sandbox; answered by C_READY */
	MSG_C_ATTACH = 91, /* client | call | CALL, or CALL_ID; OFFSET WINDOW STDIN | join a detached call, running or ended; answered like C_EXEC */
	MSG_C_CALLS = 92, /* client | any | CALL, or CALL_ID | list all calls or one call: C_CALL each, then C_END */
	MSG_C_DROP = 93, /* client | call | | the client leaves the call. A detached call continues; any other call is killed. The channel is free; not answered */

	/* client protocol: answers */
	MSG_C_READY = 96, /* warden | 0 | INIT_PID START_US WARNING*; after C_CLAIM also UID_BASE LAYER* | the sandbox is built, or claimed */
	MSG_C_STARTED = 97, /* warden | call | CALL PID WARNING; for a detached call also EXISTING OFFSET DROPPED STDIN | */
	MSG_C_STDOUT = 98, /* warden | call | raw bytes | */
	MSG_C_STDERR = 99, /* warden | call | raw bytes | */
	MSG_C_CREDIT = 100, /* both | call | BYTES | from the warden: stdin bytes it consumed; from the client: output bytes it passed on */
	MSG_C_EXIT = 101, /* warden | call | CALL STATUS REASON DURATION_US CPU_US MAXRSS_KB OUT_BYTES ERR_BYTES OOM_KILLS MEMORY or CALL_MEMORY, DENIED* | the call has ended */
	MSG_C_PROCESS = 102, /* warden | any | PID PPID CALL USER STATE CPU_US RSS_KB ARG* | */
	MSG_C_END = 103, /* warden | any | | end of a list */
	MSG_C_STATE = 104, /* warden | any | STATE INIT_PID CALLS CALL RSS_KB SWITCHING TTL_LEFT_MS IDLE_LEFT_MS EXPIRES_AT_MS POLICY_HASH LEASE LAYER* | the times are absent without a limit */
	MSG_C_SETTLED = 105, /* warden | any | SEQ HASH | of the last event in the trace */
	MSG_C_DESTROYED = 106, /* warden | that of C_DESTROY | | the sandbox is gone; the warden exits */
	MSG_C_SWITCHED = 107, /* warden | any | SEALED DURATION_US FREEZE_US | SEALED 0: nothing had changed and there is no layer; 1: the changes are now that layer; 2: calls were running, so the layer is a copy and the generation stays */
	MSG_C_LEASED = 108, /* warden | that of C_LEASE | | the client has the lease until C_LEASE_END or the end of its connection */
	MSG_C_PONG = 109, /* warden | any | | */
	MSG_C_CALL = 110, /* warden | any | CALL PID CALL_ID OP TTY DETACHED STATE TEXT START_MS OFFSET DROPPED OUT_BYTES ERR_BYTES ARG*; for an ended call also the fields of C_EXIT, or KIND TEXT ERRNO STAGE | STATE: running, or ended */
	MSG_C_POLICY_SET = 112, /* warden | any | COUNT | number of connections cut */
	MSG_C_FLOW = 113, /* warden | any | NAME ADDRESS PORT CALL OUT_BYTES BYTES DURATION_US | */
	MSG_C_DIALED = 114, /* warden | any | one descriptor | the connected socket */
	MSG_C_DENIED = 115, /* warden | call | NAME ADDRESS PORT RULE REASON TEXT HINT | the policy has just refused this to the call; once for each target and reason. C_EXIT lists all of them. Without RULE: the sandbox refused NAME, and HINT is the option that allows it */
	MSG_C_ERROR = 127, /* warden | that of the request | KIND TEXT HINT CODE ABOUT ERRNO STAGE | the request was refused or failed */
};
/* clang-format on */

/* Where the start of a command failed: before exec (user, directory, …), or in exec. */
enum run_stage { STAGE_SETUP = 0, STAGE_EXEC = 1 };

/* What a call does. */
enum call_op {
	CALL_EXEC = 0,	     /* run a command */
	CALL_READ_FILE = 1,  /* PATH to stdout */
	CALL_WRITE_FILE = 2, /* stdin to PATH */
	CALL_READ_TREE = 3,  /* PATH as a tar stream to stdout */
	CALL_WRITE_TREE = 4, /* tar stream from stdin into PATH */
	CALL_LIST = 5,	/* PATH and what is below it, to the depth ARG, as file_entry's texts */
	CALL_WATCH = 6, /* changes below PATH as watch_event's texts; ARG*: deep, entries */
};

/* Descriptors of MSG_RUN, in this order; MSG_RUN's FDS field has a bit for each present. */
enum fd_role {
	FD_STDIN,
	FD_STDOUT,
	FD_STDERR,
	FD_REPORT, /* socket: the child sends its seccomp listener, or none, before exec */
	FD_CGROUP, /* directory of the call's control group */
	FD_ENTRY,  /* cgroup.procs of a v1 group; the child enters the group itself */
	FD_GATE,   /* socket: just before exec the child writes a byte and waits for one */
	FD_ORDER,  /* socket: the spare reports ready (stand_by_ready), then reads its RUN */
	FD_ROLES,
};

/* A spare sends this on FD_ORDER when it is ready, with its listener if it has one. */
struct stand_by_ready {
	int32_t pid; /* inside the sandbox */
};

enum tag {
	TAG_VERSION = 1,
	TAG_OP,
	TAG_ARG,
	TAG_ENV, /* K=V */
	TAG_CWD,
	TAG_USER, /* name, uid, or uid:gid */
	TAG_TTY,
	TAG_ROWS,
	TAG_COLS,
	TAG_FDS, /* bit set of enum fd_role */
	TAG_PID,
	TAG_PPID,
	TAG_ERRNO,
	TAG_TEXT,
	TAG_STATUS,
	TAG_SIGNAL,
	TAG_CPU_US,
	TAG_MAXRSS_KB,
	TAG_CALL,    /* our id of the call */
	TAG_CALL_ID, /* the caller's own id */
	TAG_LABEL,   /* k=v */
	TAG_TIMEOUT_MS,
	TAG_REASON,
	TAG_DURATION_US,
	TAG_OUT_BYTES,
	TAG_ERR_BYTES,
	TAG_BYTES,
	TAG_STATE,
	TAG_RSS_KB,
	TAG_SEQ,
	TAG_HASH,
	TAG_KIND,
	TAG_HINT,
	TAG_PATH,
	TAG_MODE, /* of a file to write */
	TAG_CALLS,
	TAG_START_US,
	TAG_INIT_PID,
	/* MSG_C_BUILD */
	TAG_ID,
	TAG_NAME,
	TAG_HOSTNAME,
	TAG_EPHEMERAL, /* ends with the connection that built it */
	TAG_UID_BASE,  /* first uid of the range; absent when rootless */
	TAG_TRACE,     /* enum trace_level */
	TAG_MOUNT,     /* nested fields M_* */
	TAG_PROGRAM,   /* path of cay; the warden runs it to clean up at the end */
	TAG_DEFAULT_USER,
	TAG_FINAL,   /* the sandbox ends with this call */
	TAG_STAGE,   /* enum run_stage: where the start of a command failed */
	TAG_PROFILE, /* enum profile; absent: dev */
	/* Limits in MSG_C_BUILD; FILES, DISK and PIDS also in MSG_RUN, as rlimits */
	TAG_MEMORY,	 /* bytes; in MSG_C_EXIT: the limit that the kernel enforced by kills */
	TAG_CPU_MILLI,	 /* thousandths of one CPU */
	TAG_PIDS,	 /* processes and threads */
	TAG_FILES,	 /* open files of one process */
	TAG_DISK,	 /* bytes */
	TAG_BEST_EFFORT, /* continue without limits that cannot be enforced; MSG_C_EXEC too */
	TAG_CALL_MEMORY, /* MSG_C_EXEC: bytes */
	TAG_OOM_KILLS,	 /* MSG_C_EXIT: processes of the call that the OOM killer killed */
	TAG_WARNING,	 /* MSG_C_READY, MSG_C_STARTED: what could not be done; repeated */
	/* Generations */
	TAG_LAYER,     /* id of a sealed layer; topmost first. MSG_C_BUILD too */
	TAG_SEAL,      /* id of the layer that the upper becomes */
	TAG_SEALED,    /* 1: sealed; 0: nothing had changed, no layer; 2: the layer is a copy */
	TAG_FORCE,     /* end running calls first */
	TAG_SNAPSHOT,  /* id, for the trace */
	TAG_FREEZE_US, /* how long calls were frozen */
	TAG_SWITCHING, /* MSG_C_STATE: 1 while a switch is in progress */
	/* Storage */
	TAG_DISK_PATH = 88, /* MSG_C_BUILD: directory of the uppers; absent: PATH */
	/* Network */
	TAG_NET_POLICY = 96, /* a compiled policy; in MSG_C_BUILD: the sandbox has a network */
	TAG_NAMESERVER,	     /* MSG_C_BUILD: the host's resolvers, address[:port]; repeated */
	TAG_PROXY,	     /* MSG_C_BUILD: URL of the proxy that the host uses */
	TAG_NO_PROXY,	     /* MSG_C_BUILD: names that the host reaches without the proxy */
	TAG_PORT,
	TAG_ADDRESS,
	TAG_RULE,
	TAG_COUNT,
	TAG_DENIED, /* MSG_C_EXIT: nested fields NAME ADDRESS PORT RULE REASON TEXT HINT COUNT;
		     * repeated
		     */
	/* Lifetimes of a sandbox; *_LEFT_MS is absent without a limit */
	TAG_TTL_MS = 200,
	TAG_IDLE_MS = 201,
	TAG_ON_TIMEOUT = 202, /* 0: kill, 1: pause */
	TAG_TTL_LEFT_MS = 203,
	TAG_IDLE_LEFT_MS = 204,
	/* Ready sandboxes */
	TAG_READY_DIR = 210, /* MSG_C_BUILD: directory that lists the ready sandbox until a claim;
			MSG_C_CLAIM: the last part of that path, which is the pool key */
	TAG_NETWORK = 211,   /* MSG_C_BUILD: 1: a ready sandbox with a network, whose policy and
				resolvers MSG_C_CLAIM has */
	/* Client protocol 3 */
	TAG_NEWEST = 220, /* MSG_C_HELLO: newest version that the client speaks */
	TAG_WINDOW,	  /* output that may be sent before MSG_C_CREDIT gives more; absent: all */
	TAG_DETACHED,	  /* 1: the call outlives its client's connection */
	TAG_IDEMPOTENT,	  /* 1: if CALL_ID is already known, join that call */
	TAG_RETAIN,	  /* bytes of output to retain for a detached call */
	TAG_EXISTING,	  /* 1: the call already existed */
	TAG_OFFSET,	  /* in a file; or in a detached call's output, counting both streams */
	TAG_LENGTH,	  /* maximum bytes of a file */
	TAG_DROPPED,	  /* bytes of output no longer retained */
	TAG_STDIN, /* MSG_C_ATTACH: 1: write to stdin, unless another client does; 2: write instead
		      of it; MSG_C_STARTED: bytes that may be sent */
	TAG_CODE,  /* MSG_C_ERROR: what failed, for programs: sandbox.busy */
	TAG_EXPIRES_AT_MS, /* when the sandbox ends; Unix time */
	TAG_POLICY_HASH,   /* SHA-256 in hex of the compiled policy */
	TAG_LEASE,	   /* pid of the client with the lease; absent: no client */
	TAG_START_MS,	   /* when the call started; Unix time */
	TAG_ABOUT,	   /* MSG_C_ERROR: what its CODE is about, such as a pid */
	/* Renames */
	TAG_FLAGS = 260,  /* MSG_PREPARE: of renameat2(2) */
	TAG_DIRFD,	  /* MSG_PREPARE: what a relative PATH begins at; AT_FDCWD as u32 */
	TAG_NESTED = 300, /* MSG_C_BUILD: 1: commands may make namespaces and mounts */
};

/* Fields nested in TAG_MOUNT. */
enum mount_tag {
	M_KIND = 1, /* enum mount_kind */
	M_DEST,	    /* absolute path inside */
	M_LOWER,    /* absolute path outside; topmost first */
	M_OWNER,    /* uid outside that maps to the sandbox's user; absent: no mapping */
};

enum mount_kind {
	MOUNT_OVERLAY = 0, /* copy-on-write over M_LOWER */
	MOUNT_RO = 1,	   /* read-only bind of M_LOWER */
};

/* What commands may do inside; docs/internals/calls.md has the list. */
enum profile {
	PROFILE_DEV = 0,    /* like an own machine: root, setuid programs, debuggers */
	PROFILE_LOCKED = 1, /* one user who cannot gain privileges */
};

enum trace_level {
	TRACE_FULL = 0,
	TRACE_CALLS = 1, /* life cycle and calls only: no processes, no files */
};
