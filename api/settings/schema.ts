/** Requests and answers of settings. */
import { z } from 'zod';
import { toEnumValues } from '../../core/record.ts';
import { SETTINGS } from '../../core/setting/record.ts';

const KEYS = toEnumValues(SETTINGS);

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
        'The fields that change; others stay, and null sets one back to its default. A field that the setting has not is refused.',
    }),
  })
  .meta({ id: 'UpdateSettingRequest', example: { value: { prefix: 'EX', suffix_length: 6 } } });

export const SettingAnswer = z
  .object({
    id: z.string().meta({ description: 'Empty while everything is as by default.' }),
    key: z.enum(KEYS).meta({ description: 'Which setting it is.' }),
    value: z.record(z.string(), z.unknown()).meta({ description: 'All fields, those as by default too.' }),
    tenant_id: z.string(),
    environment_id: z.string().meta({ description: 'Empty of a setting that is one for all environments.' }),
    status: z.string().meta({ description: 'published.' }),
    created_at: z.iso.datetime().nullable().meta({ description: 'Null while everything is as by default.' }),
    updated_at: z.iso.datetime().nullable().meta({ description: 'Null while everything is as by default.' }),
    created_by: z.string(),
    updated_by: z.string(),
  })
  .meta({ id: 'SettingResponse' });
