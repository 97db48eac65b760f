/**
 * Settings of every statement. Correctness must not depend on the profile of the operator's user. So each setting that could
 * silently change an answer, or the effect of a statement, is set here. Limits that fail with an error (time, memory, rows) remain
 * the operator's.
 */
import type { ClickHouseSettings } from '@clickhouse/client';

type ClickHouseSettingValues = Record<string, string | number>;

/** Format of an answer. */
const EXACT_TEXT: ClickHouseSettingValues = {
  // 64-bit integers and decimals are JSON strings, because readers would round JSON numbers.
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_decimals: 1,
  output_format_json_named_tuples_as_objects: 1,
  output_format_json_array_of_rows: 0,
  date_time_output_format: 'simple',
  // Times without a time zone are read as UTC.
  session_timezone: 'UTC',
  // The server answers after the end of the statement, so a failure half-way is an error and not a short result.
  wait_end_of_query: 1,
  // A failure is never a row of the answer.
  http_write_exception_in_output_format: 0,
};

/** An answer is complete and current, or it is an error. */
const WHOLE_ANSWERS: ClickHouseSettingValues = {
  read_overflow_mode: 'throw',
  read_overflow_mode_leaf: 'throw',
  group_by_overflow_mode: 'throw',
  sort_overflow_mode: 'throw',
  result_overflow_mode: 'throw',
  timeout_overflow_mode: 'throw',
  timeout_overflow_mode_leaf: 'throw',
  set_overflow_mode: 'throw',
  join_overflow_mode: 'throw',
  transfer_overflow_mode: 'throw',
  distinct_overflow_mode: 'throw',
  partial_result_on_first_cancel: 0,
  limit: 0,
  offset: 0,
  additional_table_filters: '{}',
  additional_result_filter: '',
  use_query_cache: 0,
  apply_deleted_mask: 1,
  apply_patch_parts: 1,
  skip_unavailable_shards: 0,
  enable_parallel_replicas: 0,
};

/** Settings on which the meaning of our SQL depends. */
const MEANING: ClickHouseSettingValues = {
  enable_analyzer: 1,
  enable_positional_arguments: 1,
  prefer_column_name_to_alias: 0,
  // The maximum of no rows is 0 and not NULL: otherwise a fence that was never raised would silently filter out every row.
  aggregate_functions_null_for_empty: 0,
  empty_result_for_aggregation_by_empty_set: 0,
  transform_null_in: 0,
  group_by_use_nulls: 0,
  join_use_nulls: 0,
  cast_keep_nullable: 0,
  data_type_default_nullable: 0,
  final: 0,
  decimal_check_overflow: 1,
  short_circuit_function_evaluation: 'enable',
};

/** The effect of a change is complete when it is answered. */
const DONE_WHEN_ANSWERED: ClickHouseSettingValues = {
  async_insert: 0,
  // A delete hides the rows on every replica, by rewriting the mask of the parts.
  lightweight_delete_mode: 'alter_update',
  lightweight_deletes_sync: 2,
  enable_lightweight_delete: 1,
  mutations_sync: 2,
  alter_sync: 2,
  // Mutations that replicas could execute differently are rejected.
  allow_nondeterministic_mutations: 0,
  mutations_execute_nondeterministic_on_initiator: 0,
  mutations_execute_subqueries_on_initiator: 0,
  distributed_ddl_output_mode: 'throw',
};

export const STATEMENT_SETTINGS = {
  ...EXACT_TEXT,
  ...WHOLE_ANSWERS,
  ...MEANING,
  ...DONE_WHEN_ANSWERED,
} as ClickHouseSettings;

/**
 * Settings for several replicas at one address. An acknowledged write is on most of them, and a replica without the
 * newest write rejects a read instead of returning an old result (storage/clickhouse/replicas.ts). This requires that
 * the writes of a table are serialized.
 */
export const CLUSTER_SETTINGS = {
  insert_quorum: 'auto',
  insert_quorum_parallel: 0,
  // Shorter than our request timeout, so that the server gives up first.
  insert_quorum_timeout: 30_000,
  select_sequential_consistency: '1',
  // If the connection to the Keeper breaks, it is unknown whether the rows were written: we check, and send them again.
  insert_keeper_max_retries: '0',
} as ClickHouseSettings;

/**
 * An insert of one block becomes one part per month, whatever block sizes a profile sets. A part is visible whole or not at all,
 * and contains its mark (storage/events/bucket-rows.ts).
 */
export const ONE_BLOCK = {
  input_format_parallel_parsing: 0,
  max_insert_threads: '1',
  max_threads: 1,
  use_strict_insert_block_limits: 0,
  max_insert_block_size: '1000000000',
  max_insert_block_size_bytes: 0,
  min_insert_block_size_rows: '1000000000',
  min_insert_block_size_bytes: '1000000000000',
  max_block_size: '1000000000',
  // A block may have any number of months, because events may be of any time.
  max_partitions_per_insert_block: '0',
  // The engine need not merge rows before it writes a block: they are distinct, and are merged with those of other blocks later.
  optimize_on_insert: 0,
} as ClickHouseSettings;
