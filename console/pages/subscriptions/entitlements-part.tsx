/** Entitlements of the plan with other values for this subscription. */
import { Select, TextInput } from '@mantine/core';
import type { ReactNode } from 'react';
import type { components } from '../../client/openapi.d.ts';
import { useGet } from '../../client/queries.ts';
import { NumberInput } from '../../components/number-input.tsx';
import { Loaded } from '../../components/states.tsx';
import { formatQuantity } from '../../figures/format.ts';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { NEW_TEXTS } from './new-texts.ts';
import { type EntitlementOverrideDraft, NO_ENTITLEMENT_OVERRIDE } from './subscription-draft.ts';
import type { DraftPartProps } from './subscription-form.tsx';
import { listOverriddenEntitlements } from './subscription-request.ts';
import styles from './subscriptions.module.css';

export function EntitlementsPart({ draft, findError, set }: Omit<DraftPartProps, 'prices'>): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const list = useGet('/plans/{id}/entitlements', { path: { id: draft.plan_id } });
  const overridden = listOverriddenEntitlements(draft);
  const setOne = (id: string, values: EntitlementOverrideDraft) =>
    set({ entitlements: { ...draft.entitlements, [id]: values } });
  return (
    <Loaded query={list} rows={2}>
      {({ items }) =>
        items.length === 0 ? (
          <p className="muted">{texts.noEntitlements}</p>
        ) : (
          <div className={styles.pair}>
            {items.map((entitlement) => (
              <EntitlementInput
                key={entitlement.id}
                entitlement={entitlement}
                values={draft.entitlements[entitlement.id] ?? NO_ENTITLEMENT_OVERRIDE}
                error={findError(`override_entitlements[${overridden.indexOf(entitlement.id)}]`)}
                onValues={(values) => setOne(entitlement.id, values)}
              />
            ))}
          </div>
        )
      }
    </Loaded>
  );
}

type EntitlementInputProps = {
  entitlement: Pick<
    components['schemas']['EntitlementResponse'],
    'feature' | 'feature_id' | 'feature_type' | 'usage_limit' | 'grant_quota' | 'static_value' | 'is_enabled'
  >;
  values: EntitlementOverrideDraft;
  error: ReactNode;
  onValues: (values: EntitlementOverrideDraft) => void;
};

/** The input for the value that the type of the feature has. An empty input is the value of the plan. */
function EntitlementInput({ entitlement, values, error, onValues }: EntitlementInputProps): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const language = useLanguage();
  const { feature, feature_id, feature_type, usage_limit, grant_quota, static_value, is_enabled } = entitlement;
  const name = feature?.name ?? feature_id;
  if (grant_quota !== null) return <p className="muted">{texts.quotaStays(name)}</p>;
  if (feature_type === 'metered')
    return (
      <NumberInput
        label={texts.limit(name)}
        placeholder={usage_limit === null ? texts.unlimited : formatQuantity(language, String(usage_limit))}
        value={values.usage_limit}
        error={error}
        onValue={(next) => onValues({ ...values, usage_limit: next })}
      />
    );
  if (feature_type === 'static')
    return (
      <TextInput
        label={name}
        placeholder={static_value ?? ''}
        value={values.static_value}
        error={error}
        onChange={({ currentTarget }) => onValues({ ...values, static_value: currentTarget.value })}
      />
    );
  if (feature_type === 'boolean')
    return (
      <Select
        label={name}
        clearable
        clearButtonProps={{ 'aria-label': texts.asInPlan }}
        placeholder={is_enabled ? texts.granted : texts.notGranted}
        value={values.is_enabled === '' ? null : values.is_enabled}
        data={[
          { value: 'true', label: texts.granted },
          { value: 'false', label: texts.notGranted },
        ]}
        error={error}
        onChange={(next) => onValues({ ...values, is_enabled: (next as 'true' | 'false' | null) ?? '' })}
      />
    );
  return <p className="muted">{texts.configByApi(name)}</p>;
}
