/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of both protocols: frame types, field tags, and nothing else.
 * docs/protocol.md says what each means and who may send it when.
 *
 * Of the init protocol, warden <-> init, a channel is the warden's number of a call; of the client
 * protocol, client <-> warden, it is the client's. 0 is the sandbox in both.
 */
#pragma once

#include <stdint.h>

/* In the environment of a warden, for what is left where its creator dies before it says more. */
#define WARDEN_ENV_ID	   "CAY_SANDBOX"
#define WARDEN_ENV_PROGRAM "CAY_PROGRAM"

enum {
	PROTO_INIT_VERSION = 1,
	PROTO_CLIENT_VERSION = 2,
};

/* Frame types. Below 64: init protocol. From 64 on: client protocol. */
enum msg {
	/* both ways */
	MSG_HELLO = 1, /* VERSION */
	/* warden to init */
	MSG_RUN = 2, /* OP, ARG*, ENV*, CWD, USER, TTY, PROFILE, FILES, DISK, PIDS; descriptors by
			FD_ROLE, in order */
	MSG_SIGNAL = 3, /* SIGNAL: to the call's process group; channel 0: to every process */
	MSG_STOP = 4,	/* end everything and exit */
	MSG_ENTER = 5,	/* two descriptors: mount namespace and root of the next generation */
	MSG_DIAL = 8,	/* PORT: connect to a port inside; channel: a number of the warden's */
	MSG_STAND_BY =
		9, /* as RUN, without a command: make a child that waits for its RUN; TRACE */
	/* init to warden */
	MSG_STARTED = 16, /* PID as seen inside */
	MSG_FAILED = 17,  /* STAGE, ERRNO, TEXT: the command never ran */
	MSG_EXITED = 18,  /* STATUS as of wait(2), CPU_US, MAXRSS_KB */
	MSG_REAPED = 19,  /* PID, STATUS: an orphan that init reaped; channel 0 */
	MSG_ENTERED = 20, /* ERRNO: 0, or EBUSY where there are other processes; channel 0 */
	MSG_DIALED = 24,  /* a connected socket, or ERRNO */

	/* client to warden */
	MSG_C_HELLO = 64, /* VERSION */
	MSG_C_BUILD = 65, /* the sandbox; once, first, from the creator only */
	MSG_C_EXEC = 66, /* OP, ARG*, ENV*, CWD, USER, TTY, ROWS, COLS, CALL_ID, LABEL*, TIMEOUT_MS,
			    FINAL, CALL_MEMORY, BEST_EFFORT, SWITCHING */
	MSG_C_STDIN = 67,     /* raw bytes */
	MSG_C_STDIN_EOF = 68, /* empty */
	MSG_C_SIGNAL = 69,    /* SIGNAL */
	MSG_C_RESIZE = 70,    /* ROWS, COLS */
	MSG_C_PS = 71,	      /* ask for processes */
	MSG_C_INFO = 72,      /* ask for the sandbox's state */
	MSG_C_SETTLE = 73,    /* answer when every event up to now is in the trace */
	MSG_C_DESTROY = 74,   /* REASON: end the sandbox and remove it */
	MSG_C_SWITCH = 75, /* to the next generation: SEAL or not, LAYER*, FORCE, SNAPSHOT, NAME */
	MSG_C_SOON = 76,   /* a SWITCH with SEAL is about to be asked for */
	MSG_C_KEEP = 88,   /* from the creator: the sandbox is in the catalog and may outlive it */
	MSG_C_POLICY = 80, /* NET_POLICY: from now on */
	MSG_C_NET = 81,	   /* ask for the open connections */
	MSG_C_DIAL = 82,   /* PORT: connect to a port inside */
	MSG_C_PAUSE = 84,  /* stop everything inside; answered by STATE, like the next two */
	MSG_C_RESUME = 85,
	MSG_C_EXTEND = 86, /* TTL_MS: time to live from now on; 0: no end */
	MSG_C_CLAIM = 90,  /* a ready sandbox, by its first owner: WARM, EPHEMERAL, TEXT, NAME,
			      HOSTNAME, USER, CWD, ENV*, LABEL*, times; answered by READY */
	/* warden to client */
	MSG_C_READY = 96,   /* built; PID of init, START_US, WARNING*; claimed: UID_BASE, LAYER* */
	MSG_C_STARTED = 97, /* CALL, PID, WARNING */
	MSG_C_STDOUT = 98,  /* raw bytes */
	MSG_C_STDERR = 99,  /* raw bytes */
	MSG_C_CREDIT = 100, /* BYTES of stdin that were taken */
	MSG_C_EXIT = 101,   /* CALL, STATUS, REASON, DURATION_US, CPU_US, MAXRSS_KB, OUT_BYTES,
			       ERR_BYTES, OOM_KILLS, MEMORY or CALL_MEMORY */
	MSG_C_PROCESS =
		102,	   /* PID, PPID, CALL, USER, STATE, CPU_US, RSS_KB, ARG*; one per process */
	MSG_C_END = 103,   /* end of a list */
	MSG_C_STATE = 104, /* answer to INFO: STATE, INIT_PID, CALLS, SEQ, HASH, ... */
	MSG_C_SETTLED = 105,	/* SEQ, HASH */
	MSG_C_DESTROYED = 106,	/* all gone; the warden ends */
	MSG_C_SWITCHED = 107,	/* SEALED, DURATION_US, FREEZE_US */
	MSG_C_POLICY_SET = 112, /* COUNT of connections that were cut */
	MSG_C_FLOW = 113,	/* NAME ADDRESS PORT CALL OUT_BYTES BYTES DURATION_US; many */
	MSG_C_DIALED = 114,	/* a connected socket */
	MSG_C_ERROR = 127,	/* KIND, TEXT, HINT, ERRNO; on the channel it concerns */
};

/* Where starting a command failed: before exec (user, directory, …), or in it. */
enum run_stage { STAGE_SETUP = 0, STAGE_EXEC = 1 };

/* What a call does. */
enum call_op {
	OP_EXEC = 0,	   /* run a command */
	OP_READ_FILE = 1,  /* PATH to stdout */
	OP_WRITE_FILE = 2, /* stdin to PATH */
	OP_READ_TREE = 3,  /* PATH as a tar stream to stdout */
	OP_WRITE_TREE = 4, /* tar stream from stdin into PATH */
};

/* Descriptors of MSG_RUN, in this order; MSG_RUN's FDS field has a bit for each present. */
enum fd_role {
	FD_STDIN,
	FD_STDOUT,
	FD_STDERR,
	FD_REPORT, /* socket: the child sends its seccomp listener here before exec */
	FD_CGROUP, /* directory of the call's control group */
	FD_ENTRY,  /* cgroup.procs of a v1 group that the child enters by itself */
	FD_GATE,   /* socket: the child writes a byte to it just before exec and waits for one */
	FD_ORDER,  /* socket: the child says that it is ready (stand_by_ready), and reads its RUN */
	FD_ROLES,
};

/* What a child made ahead says on FD_ORDER when it is ready, with its listener if it has one. */
struct stand_by_ready {
	int32_t pid; /* as seen inside */
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
	TAG_PROGRAM,   /* path of cay, for the warden's last act */
	TAG_DEFAULT_USER,
	TAG_FINAL,   /* the sandbox ends with this call */
	TAG_STAGE,   /* enum run_stage: how far a command got that never ran */
	TAG_PROFILE, /* enum profile; absent: dev */
	/* Limits: of MSG_C_BUILD; FILES, DISK and PIDS also of MSG_RUN, as rlimits */
	TAG_MEMORY,	 /* bytes; in MSG_C_EXIT the limit that processes were killed for */
	TAG_CPU_MILLI,	 /* thousandths of one CPU */
	TAG_PIDS,	 /* processes and threads */
	TAG_FILES,	 /* open files of one process */
	TAG_DISK,	 /* bytes */
	TAG_BEST_EFFORT, /* go on without limits that cannot be enforced; MSG_C_EXEC too */
	TAG_CALL_MEMORY, /* MSG_C_EXEC: bytes */
	TAG_OOM_KILLS,	 /* MSG_C_EXIT: processes of the call killed for lack of memory */
	TAG_WARNING,	 /* MSG_C_READY, MSG_C_STARTED: what could not be done; many */
	/* Generations */
	TAG_LAYER,  /* id of a sealed layer; topmost first. MSG_C_BUILD too */
	TAG_SEAL,   /* id of the layer that the upper becomes */
	TAG_SEALED, /* 1: it did; 0: nothing had changed, there is no such layer; 2: it is a copy */
	TAG_FORCE,  /* end running calls first */
	TAG_SNAPSHOT,  /* id, for the trace */
	TAG_FREEZE_US, /* how long calls stood still */
	TAG_SWITCHING, /* MSG_C_STATE: 1 while a switch is under way; MSG_C_EXEC: 1: only where what
			  its client asked for last has become a layer */
	/* The pool */
	TAG_DISK_PATH = 88, /* MSG_C_BUILD: where the uppers lie; absent: in PATH */
	/* Network */
	TAG_NET_POLICY = 96, /* a compiled policy; in MSG_C_BUILD: the sandbox has a network */
	TAG_NAMESERVER,	     /* MSG_C_BUILD, of the host: address[:port]; many */
	TAG_PROXY,	     /* MSG_C_BUILD: through which the host dials, a URL */
	TAG_NO_PROXY,	     /* MSG_C_BUILD: which names it does not dial so */
	TAG_PORT,
	TAG_ADDRESS,
	TAG_RULE,
	TAG_COUNT,
	TAG_DENIED, /* MSG_C_EXIT: nested fields NAME ADDRESS PORT RULE REASON TEXT HINT COUNT; many
		     */
	/* Times of a sandbox; those that are left are absent where there is no limit */
	TAG_TTL_MS = 200,
	TAG_IDLE_MS = 201,
	TAG_ON_TIMEOUT = 202, /* 0: kill, 1: pause */
	TAG_TTL_LEFT_MS = 203,
	TAG_IDLE_LEFT_MS = 204,
	/* Ready sandboxes */
	TAG_WARM = 210, /* MSG_C_BUILD: wait for an owner, listed in this directory; MSG_C_CLAIM:
			   the last part of its path, which says what kind of sandbox it is */
};

/* Fields nested in TAG_MOUNT. */
enum mount_tag {
	M_KIND = 1, /* enum mount_kind */
	M_DEST,	    /* absolute path inside */
	M_LOWER,    /* absolute path outside; topmost first */
	M_OWNER,    /* uid outside that becomes the sandbox's user inside; absent: as they are */
};

enum mount_kind {
	MOUNT_OVERLAY = 0, /* copy-on-write over M_LOWER */
	MOUNT_RO = 1,	   /* read-only bind of M_LOWER */
};

/* What commands may do inside; ARCHITECTURE.md has the list. */
enum profile {
	PROFILE_DEV = 0,    /* as on a machine of one's own: root, setuid programs, debuggers */
	PROFILE_LOCKED = 1, /* one user without any right to become more */
};

enum trace_level {
	TRACE_FULL = 0,
	TRACE_CALLS = 1, /* life cycle and calls only: no processes, no files */
};
