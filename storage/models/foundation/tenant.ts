import type { Database } from '../../foundation/stores.ts';
import { TenantWideModel } from './model.ts';

export class TenantModel extends TenantWideModel {
  static override tableName = 'tenants';
  static override recordName = 'tenant';
  static override tenantColumn = 'id';
  static override get jsonAttributes() {
    return ['metadata', 'billing_details'];
  }
  declare name: string;
  declare billing_details: Record<string, unknown> | null;
  declare metadata: Record<string, string>;
  declare suspended: boolean;
  /** False for the name that the first start gives, which stands on no document. */
  declare is_named: boolean;
}

export type TenantLine = Pick<TenantModel, 'id' | 'name' | 'suspended' | 'created_at'>;

/** Lists all tenants, oldest first. Only operator commands call it, never a request of a tenant. */
export async function listTenants(database: Database): Promise<TenantLine[]> {
  const { rows } = await database.raw(
    `select id, name, suspended, created_at from tenants where status = 'published' order by created_at, id`,
  );
  return rows;
}
