/** Table `users`: people and service accounts, the principals that API keys belong to. */
import { z } from 'zod';
import { TenantWideModel } from './model.ts';

export const USER_TYPES = ['user', 'service_account'] as const;

export class UserModel extends TenantWideModel {
  static override tableName = 'users';
  static override recordName = 'user';
  static override record = z.object({ type: z.enum(USER_TYPES) });
  // `roles` is not among the JSON columns: its type is text[], which the Postgres driver converts itself.
  static override get jsonAttributes() {
    return ['metadata'];
  }
  declare tenant_id: string;
  declare name: string;
  declare email: string | null;
  declare type: (typeof USER_TYPES)[number];
  declare roles: string[];
  declare metadata: Record<string, string>;
}
