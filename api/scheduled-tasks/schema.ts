/** Requests and answers of scheduled tasks. */
import { z } from 'zod';
import { jobConfig, scheduledTaskShape } from '../../core/scheduled-task/record.ts';
import { instantUs } from '../events/usage-query-fields.ts';
import { BASE_COLUMNS, flag, type ListGrammar, listAnswer, listShape } from '../http/list.ts';

const { connection_id, entity_type, interval } = scheduledTaskShape.shape;

const example = {
  connection_id: 'conn_01JZ8K3M5N7P9Q1R3S5T7V9W1X',
  entity_type: 'usage_analytics',
  interval: 'daily',
  job_config: { bucket: 'acme-billing', region: 'eu-central-1', key_prefix: 'farthing', compression: 'gzip' },
};

export const CreateScheduledTask = z
  .object({
    connection_id,
    entity_type,
    interval,
    enabled: z
      .boolean()
      .default(true)
      .meta({ description: 'Whether files are written by themselves; true when absent.' }),
    job_config: jobConfig.meta({ id: 'S3JobConfig', description: 'Where in the connection, and in which form.' }),
  })
  .meta({ id: 'CreateScheduledTaskRequest', example });

export const UpdateScheduledTask = z
  .object({ enabled: z.boolean().meta({ description: 'Whether files are written by themselves.' }) })
  .meta({ id: 'UpdateScheduledTaskRequest', example: { enabled: false } });

/** Clients send a body without a key, or none. */
export const RunNow = z
  .object({
    start_time: instantUs.meta({ description: 'Of another range than the last whole interval: with `end_time`.' }),
    end_time: instantUs.meta({ description: 'The end of that, exclusive; not in the future.' }),
  })
  .optional()
  .meta({
    id: 'TriggerForceRunRequest',
    example: { start_time: '2026-01-01T00:00:00Z', end_time: '2026-01-02T00:00:00Z' },
  });

export const ScheduledTaskAnswer = scheduledTaskShape
  .extend({
    next_start: z.string().meta({ description: 'From when on the next file is.' }),
    next_end: z.string().meta({ description: 'Until when, exclusive: some minutes later it is written.' }),
  })
  .meta({ id: 'ScheduledTaskResponse' });
export const ScheduledTaskListAnswer = listAnswer(ScheduledTaskAnswer, 'ListScheduledTasksResponse');

export const ScheduledTaskFilter = listShape({
  connection_id: z.string().optional().meta({ description: 'Those that write to this connection.' }),
  entity_type: entity_type.optional().meta({ description: 'What the records of their files are.' }),
  interval: interval.optional().meta({ description: 'How long the time of a file is.' }),
  enabled: flag.optional().meta({ description: 'Whether files are written by themselves.' }),
}).meta({ id: 'ScheduledTaskFilter' });
export type ScheduledTaskFilter = z.output<typeof ScheduledTaskFilter>;

export const scheduledTaskGrammar: ListGrammar = {
  columns: {
    ...BASE_COLUMNS,
    connection_id: 'string',
    entity_type: 'string',
    interval: 'string',
    enabled: 'boolean',
    next_end: 'date',
  },
};

export const RunNowAnswer = z
  .object({
    workflow_id: z.string().meta({ description: 'The work: /workflows tells of it, and /tasks of its task.' }),
    message: z.string().meta({ description: 'What was begun.' }),
    start_time: z.string().meta({ description: 'From when on records are in the file.' }),
    end_time: z.string().meta({ description: 'Until when, exclusive.' }),
    mode: z.enum(['automatic', 'custom']).meta({ description: 'custom where the request has stated the range.' }),
    task_id: z.string().meta({ description: 'The task that tells how far it is.' }),
  })
  .meta({ id: 'TriggerForceRunResponse' });
