/* SPDX-License-Identifier: Apache-2.0 */
/* Queries and bodies of the routes (tables.c). */
#pragma once

#include "api/v1/doc.h"

extern const struct v1_field v1_no_body[], v1_create_body[], v1_list_query[], v1_patch_body[],
	v1_call_body[], v1_start_query[], v1_output_query[], v1_wait_query[], v1_signal_body[],
	v1_size_body[], v1_stdin_query[], v1_attach_query[], v1_path_query[], v1_write_query[],
	v1_dir_query[], v1_move_body[], v1_snapshot_body[], v1_rollback_body[], v1_fork_body[],
	v1_tx_body[], v1_abort_body[], v1_diff_query[], v1_snapshots_query[], v1_trace_query[],
	v1_net_query[], v1_policy_body[], v1_ended_query[], v1_pool_body[], v1_key_body[],
	v1_gc_body[];
