/** Terms of an environment under which its invoices become final. One statement reads them, because each finalization needs them. */
import type { Scope } from '../../../core/foundation/scope.ts';
import { type SettingValue, toWholeSetting } from '../../../core/platform/setting/record.ts';
import type { Database } from '../../foundation/stores.ts';

export type FinalizationTerms = {
  readonly config: SettingValue<'invoice_config'>;
  /** Whether the environment is for production, and neither the tenant nor its setting names the seller of its invoices. */
  readonly is_seller_unknown: boolean;
};

export async function loadFinalizationTerms(
  { tenant_id, environment_id }: Scope,
  database: Database,
): Promise<FinalizationTerms> {
  const { rows } = await database.raw(
    `select (select s.value from settings s
              where s.tenant_id = :tenant_id and s.environment_id = :environment_id and s.key = 'invoice_config') as config,
            exists (
              select from tenants t
                join environments e on e.tenant_id = t.id and e.id = :environment_id and e.type = 'production'
               where t.id = :tenant_id and not t.is_named
                 and not exists (select from settings s
                                  where s.tenant_id = :tenant_id and s.environment_id = :environment_id
                                    and s.key = 'invoice_pdf_config' and s.value ->> 'company' is not null)
            ) as is_seller_unknown`,
    { tenant_id, environment_id },
  );
  const [{ config, is_seller_unknown }] = rows;
  return { config: toWholeSetting('invoice_config', config ?? undefined), is_seller_unknown };
}
