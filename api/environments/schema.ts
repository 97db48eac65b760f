/** Requests and answers of environments. */
import { z } from 'zod';
import { anyCase, keyText } from '../../core/record.ts';
import { ENVIRONMENT_TYPES } from '../../storage/models/environment.ts';
import { listShape, Pagination } from '../http/list.ts';
import { WorkflowResult } from '../workflows/schema.ts';

const name = keyText.trim().min(1, { error: 'must not be blank' }).meta({ description: 'What people call it.' });
const type = anyCase(ENVIRONMENT_TYPES).meta({
  description: 'Tells people what it is for; nothing else goes by it. It cannot be changed later.',
});

export const CreateEnvironment = z.object({ name, type }).meta({ id: 'CreateEnvironmentRequest' });
export const UpdateEnvironment = z
  .object({
    name: name.optional().meta(name.meta()!),
    type: z.string().optional().meta({ description: 'Refused when it is another than before: it cannot be changed.' }),
  })
  .meta({ id: 'UpdateEnvironmentRequest', example: { name: 'Staging' } });

export const CloneEnvironment = z
  .object({
    target_environment_id: z
      .string()
      .nullish()
      .meta({ description: 'The environment that gets the copies; or `name` and `type`, which make one.' }),
    name: name.nullish().meta({ description: 'The name of a new environment that gets the copies.' }),
    type: type.nullish().meta({ description: 'The type of the new environment.' }),
  })
  .transform(({ target_environment_id, name, type }, context) => {
    if (target_environment_id && !name && !type) return { target_environment_id };
    if (!target_environment_id && name && type) return { name, type };
    const path = [target_environment_id ? 'name' : name ? 'type' : 'target_environment_id'];
    context.addIssue({ code: 'custom', path, message: 'give target_environment_id, or name and type of a new one' });
    return z.NEVER;
  })
  .meta({ id: 'CloneEnvironmentRequest', example: { target_environment_id: 'env_01JZ8K3M5N7P9Q1R3S5T7V9W2X' } });

export const CloneAnswer = z
  .object({
    ...WorkflowResult.shape,
    target_environment_id: z.string().meta({ description: 'The environment that gets the copies.' }),
  })
  .meta({ id: 'CloneEnvironmentResponse' });

export const EnvironmentAnswer = z
  .object({
    id: z.string(),
    name,
    type: z.enum(ENVIRONMENT_TYPES).meta({ description: 'What it is for; nothing else goes by it.' }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'EnvironmentResponse' });

export const EnvironmentFilter = listShape({});
/** The one list with an envelope of its own. */
export const EnvironmentListAnswer = z
  .object({
    environments: z.array(EnvironmentAnswer).meta({ description: 'A page of those of the tenant.' }),
    ...Pagination.shape,
  })
  .meta({ id: 'ListEnvironmentsResponse' });

export const environmentGrammar = {
  columns: { id: 'string', name: 'string', type: 'string', created_at: 'date', updated_at: 'date' },
} as const;
