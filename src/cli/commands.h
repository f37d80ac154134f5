/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of all commands. */
#pragma once

#include "cli/cmd.h"

extern const struct cmd cmd_run, cmd_create, cmd_exec, cmd_shell, cmd_cp, cmd_trace;
extern const struct cmd cmd_calls, cmd_logs, cmd_attach;
extern const struct cmd cmd_ls, cmd_show, cmd_why, cmd_ps, cmd_kill, cmd_gc;
extern const struct cmd cmd_snapshot, cmd_snapshots, cmd_rollback, cmd_fork, cmd_tx;
extern const struct cmd cmd_policy_check, cmd_policy_explain, cmd_policy_show;
extern const struct cmd cmd_policy_set, cmd_net, cmd_port;
extern const struct cmd cmd_pool_set, cmd_pool_ls;
extern const struct cmd cmd_diff, cmd_apply, cmd_explore, cmd_pause, cmd_resume, cmd_extend;
extern const struct cmd cmd_serve, cmd_key_create, cmd_key_ls, cmd_key_set, cmd_key_revoke;
extern const struct cmd cmd_doctor, cmd_setup, cmd_completion, cmd_version, cmd_help;
/* hidden commands */
extern const struct cmd cmd_reconcile, cmd_tidy, cmd_pool_keep, cmd_complete;
extern const struct cmd cmd_serve_front, cmd_serve_worker, cmd_serve_group;
