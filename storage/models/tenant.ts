/** Table `tenants`. */
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
}
