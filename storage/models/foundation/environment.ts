import { z } from 'zod';
import { TenantWideModel } from './model.ts';

export const ENVIRONMENT_TYPES = ['development', 'production'] as const;

export class EnvironmentModel extends TenantWideModel {
  static override tableName = 'environments';
  static override recordName = 'environment';
  static override record = z.object({ type: z.enum(ENVIRONMENT_TYPES) });
  declare tenant_id: string;
  declare name: string;
  declare type: (typeof ENVIRONMENT_TYPES)[number];
}
