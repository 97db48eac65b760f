/** Requests and answers of environments. */
import { z } from 'zod';
import { anyCase, keyText } from '../../core/record.ts';
import { ENVIRONMENT_TYPES } from '../../storage/models/environment.ts';
import { listShape } from '../http/list.ts';

const name = keyText.trim().min(1, { error: 'must not be blank' });

export const CreateEnvironment = z
  .object({ name, type: anyCase(ENVIRONMENT_TYPES) })
  .meta({ id: 'CreateEnvironmentRequest' });
export const UpdateEnvironment = z
  .object({ name: name.nullish(), type: z.string().nullish() })
  .meta({ id: 'UpdateEnvironmentRequest', example: { name: 'Staging' } });

export const EnvironmentAnswer = z
  .object({
    id: z.string(),
    name: z.string(),
    type: z.enum(ENVIRONMENT_TYPES),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'EnvironmentResponse' });

export const EnvironmentFilter = listShape({});
/** The one list with an envelope of its own. */
export const EnvironmentListAnswer = z
  .object({ environments: z.array(EnvironmentAnswer), total: z.int(), offset: z.int(), limit: z.int() })
  .meta({ id: 'ListEnvironmentsResponse' });

export const environmentGrammar = {
  columns: { id: 'string', name: 'string', type: 'string', created_at: 'date', updated_at: 'date' },
} as const;
