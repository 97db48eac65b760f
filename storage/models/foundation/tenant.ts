import type { Scope } from '../../../core/foundation/scope.ts';
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

/** Whether the environment is for production, and neither the tenant nor its setting names the seller of its invoices. */
export async function isSellerUnknown({ tenant_id, environment_id }: Scope, database: Database): Promise<boolean> {
  const { rows } = await database.raw(
    `select exists (
       select from tenants t
         join environments e on e.tenant_id = t.id and e.id = :environment_id and e.type = 'production'
        where t.id = :tenant_id and not t.is_named
          and not exists (select from settings s
                           where s.tenant_id = :tenant_id and s.environment_id = :environment_id
                             and s.key = 'invoice_pdf_config' and s.value ->> 'company' is not null)) as is_unknown`,
    { tenant_id, environment_id },
  );
  return rows[0].is_unknown;
}
