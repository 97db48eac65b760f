import { z } from 'zod';
import { toEnumValues } from '../../../core/foundation/record.ts';
import { SETTINGS } from '../../../core/platform/setting/record.ts';

export const KEYS = toEnumValues(SETTINGS);

export const settingParams = z.object({
  key: z
    .string()
    .min(1)
    .meta({ description: `One of ${KEYS.join(', ')}.`, example: 'invoice_config' }),
});

export const UpdateSetting = z
  .object({
    value: z.record(z.string(), z.unknown()).meta({
      description:
        'Fields to change. Other fields remain, and null resets a field to its default. An unknown field is refused.',
    }),
  })
  .meta({ id: 'UpdateSettingRequest', example: { value: { prefix: 'EX', suffix_length: 6 } } });

export const SettingAnswer = z
  .object({
    id: z.string().meta({ description: 'Id of the stored setting; empty while all fields have their defaults.' }),
    key: z.enum(KEYS).meta({ description: 'Key of the setting.' }),
    value: z.record(z.string(), z.unknown()).meta({ description: 'All fields, including those with default values.' }),
    default: z
      .record(z.string(), z.unknown())
      .meta({ description: 'All fields with their defaults, as after `DELETE /settings/{key}`.' }),
    is_set: z.boolean().meta({ description: 'True if at least one field was changed from its default.' }),
    tenant_id: z.string(),
    environment_id: z.string().meta({ description: 'Id of the environment; empty for a setting of the whole tenant.' }),
    status: z.string().meta({ description: 'Always published.' }),
    created_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'Time of the first change; null while all fields have their defaults.' }),
    updated_at: z.iso
      .datetime()
      .nullable()
      .meta({ description: 'Time of the last change; null while all fields have their defaults.' }),
    created_by: z.string(),
    updated_by: z.string(),
  })
  .meta({ id: 'SettingResponse' });

export const SettingListAnswer = z
  .object({ items: z.array(SettingAnswer).meta({ description: 'All settings, in a fixed order.' }) })
  .meta({ id: 'ListSettingsResponse' });
