import { z } from 'zod';
import { jobConfig, scheduledTaskShape } from '../../../core/platform/scheduled-task/record.ts';
import { BASE_COLUMNS, flag, type ListGrammar, listAnswer, listShape } from '../../http/list.ts';
import { instantUs } from '../../metering/usage/query-fields.ts';

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
    enabled: z.boolean().default(true).meta({ description: 'True if files are written on schedule. Default true.' }),
    job_config: jobConfig.meta({
      id: 'S3JobConfig',
      description: 'Destination within the connection, and format of the files.',
    }),
  })
  .meta({ id: 'CreateScheduledTaskRequest', example });

export const UpdateScheduledTask = z
  .object({ enabled: z.boolean().meta({ description: 'True if files are written on schedule.' }) })
  .meta({ id: 'UpdateScheduledTaskRequest', example: { enabled: false } });

/** Clients send a body without keys, or no body. */
export const RunNow = z
  .object({
    start_time: instantUs.meta({
      description: 'Start of the range; requires `end_time`. Default: the last whole interval.',
    }),
    end_time: instantUs.meta({
      description: 'End of the range, exclusive; requires `start_time`. An instant in the future is refused.',
    }),
  })
  .optional()
  .meta({
    id: 'TriggerForceRunRequest',
    example: { start_time: '2026-01-01T00:00:00Z', end_time: '2026-01-02T00:00:00Z' },
  });

export const ScheduledTaskAnswer = scheduledTaskShape
  .extend({
    next_start: z.string().meta({ description: "Start of the next file's range." }),
    next_end: z
      .string()
      .meta({ description: "End of the next file's range, exclusive. The file is written some minutes later." }),
  })
  .meta({ id: 'ScheduledTaskResponse' });
export const ScheduledTaskListAnswer = listAnswer(ScheduledTaskAnswer, 'ListScheduledTasksResponse');

export const ScheduledTaskFilter = listShape({
  connection_id: z.string().optional().meta({ description: 'Matches tasks that write to this connection.' }),
  entity_type: entity_type.optional().meta({ description: 'Kind of exported records.' }),
  interval: interval.optional().meta({ description: 'Interval of a file.' }),
  enabled: flag.optional().meta({ description: 'Matches enabled or disabled tasks.' }),
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
    workflow_id: z
      .string()
      .meta({ description: 'Id of the workflow; its status is in /workflows, and that of its task in /tasks.' }),
    message: z.string().meta({ description: 'Confirmation of the started export.' }),
    start_time: z.string().meta({ description: 'Start of the exported range.' }),
    end_time: z.string().meta({ description: 'End of the exported range, exclusive.' }),
    mode: z.enum(['automatic', 'custom']).meta({ description: 'custom if the request set the range, else automatic.' }),
    task_id: z.string().meta({ description: 'Id of the task that shows the progress.' }),
  })
  .meta({ id: 'TriggerForceRunResponse' });
