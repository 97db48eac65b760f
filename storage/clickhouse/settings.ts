/**
 * The settings that every statement carries. What is right must not depend on the profile of the user that an operator has
 * given us, so whatever could quietly change an answer, or what a statement leaves behind, is named here with its value. What
 * fails loudly (limits of time, memory and rows) stays the operator's.
 */
import type { ClickHouseSettings } from '@clickhouse/client';

type ClickHouseSettingValues = Record<string, string | number>;

/** How an answer is written. */
const EXACT_TEXT: ClickHouseSettingValues = {
  // A JSON number would be rounded by the reader.
  output_format_json_quote_64bit_integers: 1,
  output_format_json_quote_decimals: 1,
  output_format_json_named_tuples_as_objects: 1,
  output_format_json_array_of_rows: 0,
  date_time_output_format: 'simple',
  // Times say UTC themselves; those that do not are read so too.
  session_timezone: 'UTC',
  // The server answers when the statement has ended, so a failure half-way is a failure and not a short result.
  wait_end_of_query: 1,
  // A failure is never a row of the answer.
  http_write_exception_in_output_format: 0,
};

/** What is there, whole and as of now, or an error. */
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

/** What our SQL means. */
const MEANING: ClickHouseSettingValues = {
  enable_analyzer: 1,
  enable_positional_arguments: 1,
  prefer_column_name_to_alias: 0,
  // A greatest number of no rows is 0 and not NULL: a fence that nobody has raised would otherwise let no row through, and
  // say nothing.
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

/** What a change leaves behind when it is answered. */
const DONE_WHEN_ANSWERED: ClickHouseSettingValues = {
  async_insert: 0,
  // A delete takes the rows out of sight on every replica, by rewriting the mask of the parts.
  lightweight_delete_mode: 'alter_update',
  lightweight_deletes_sync: 2,
  enable_lightweight_delete: 1,
  mutations_sync: 2,
  alter_sync: 2,
  // What replicas would carry out differently is refused.
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
 * Several replicas behind one address: what is acknowledged is on most of them, and a replica that has not got it yet
 * refuses to answer instead of answering without it (storage/clickhouse/replicas.ts). For that writes of a table are made one
 * after the other.
 */
export const CLUSTER_SETTINGS = {
  insert_quorum: 'auto',
  insert_quorum_parallel: 0,
  // Shorter than we wait for an answer: who gives up first is the server.
  insert_quorum_timeout: 30_000,
  select_sequential_consistency: '1',
  // When the connection to the Keeper breaks it is not known whether the rows are there: we look, and send them again.
  insert_keeper_max_retries: '0',
} as ClickHouseSettings;

/**
 * An insert of one block becomes one part for each month, whatever sizes of blocks a profile names: a part is there whole or
 * not at all, and its mark is in it (storage/events/usage-rows.ts).
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
  // Events may be of any time: a block of a hundred months is written like any other.
  max_partitions_per_insert_block: '0',
  // The rows of a block are distinct already; the merges combine them with those of others.
  optimize_on_insert: 0,
} as ClickHouseSettings;
