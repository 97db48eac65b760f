/** Requests and answers of environments. */
import { z } from 'zod';
import { anyCase, keyText } from '../../../core/foundation/record.ts';
import { ENVIRONMENT_TYPES } from '../../../storage/models/foundation/environment.ts';
import { WorkflowResult } from '../../foundation/workflows/schema.ts';
import { listShape, Pagination } from '../../http/list.ts';

const name = keyText
  .trim()
  .min(1, { error: 'must not be blank' })
  .meta({ description: 'Display name of the environment.' });
const type = anyCase(ENVIRONMENT_TYPES).meta({
  description: 'Purpose of the environment, for people. It cannot be changed later.',
});

export const CreateEnvironment = z.object({ name, type }).meta({ id: 'CreateEnvironmentRequest' });
export const UpdateEnvironment = z
  .object({
    name: name.optional().meta(name.meta()!),
    type: z
      .string()
      .optional()
      .meta({ description: 'Type of the environment. A different type is refused, because it cannot be changed.' }),
  })
  .meta({ id: 'UpdateEnvironmentRequest', example: { name: 'Staging' } });

export const CloneEnvironment = z
  .object({
    target_environment_id: z.string().nullish().meta({
      description: 'Environment that receives the copies. An alternative to `name` and `type`, which create one.',
    }),
    name: name
      .nullish()
      .meta({ description: 'Name of a new environment that receives the copies. It requires `type`.' }),
    type: type.nullish().meta({ description: 'Type of the new environment. It requires `name`.' }),
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
    target_environment_id: z.string().meta({ description: 'Environment that receives the copies.' }),
  })
  .meta({ id: 'CloneEnvironmentResponse' });

export const EnvironmentAnswer = z
  .object({
    id: z.string(),
    name,
    type: z.enum(ENVIRONMENT_TYPES).meta({ description: 'Purpose of the environment, for people.' }),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'EnvironmentResponse' });

export const EnvironmentFilter = listShape({});
/** The list of environments has its own envelope, without `items` and `pagination`. */
export const EnvironmentListAnswer = z
  .object({
    environments: z.array(EnvironmentAnswer).meta({ description: 'Page of the environments of the tenant.' }),
    ...Pagination.shape,
  })
  .meta({ id: 'ListEnvironmentsResponse' });

export const environmentGrammar = {
  columns: { id: 'string', name: 'string', type: 'string', created_at: 'date', updated_at: 'date' },
} as const;
