/** Grants a feature with a plan. */
import { Select, TextInput } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, type ReactNode, useState } from 'react';
import { api, formatCurl, readData } from '../../client/client.ts';
import { invalidate, useGet } from '../../client/queries.ts';
import { CodeBlock } from '../../components/copy.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { FormFoot, useDeed } from '../../components/form.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { SideSheet } from '../../components/side-sheet.tsx';
import { Loaded } from '../../components/states.tsx';
import { useTexts } from '../../texts/texts.ts';
import { PLAN_TEXTS } from './plan-texts.ts';
import styles from './plans.module.css';

/** A first feature, as the command creates it. */
const EXAMPLE = { name: 'Tokens', type: 'metered', meter_id: 'meter_…' };
const FEATURES_MAX = 100;
const RESET_PERIODS = ['MONTHLY', 'ANNUAL', 'WEEKLY', 'DAILY', 'NEVER'] as const;

export function EntitlementForm({ plan_id, onClose }: { plan_id: string; onClose: () => void }): ReactNode {
  const texts = useTexts(PLAN_TEXTS);
  const queries = useQueryClient();
  const features = useGet('/features', { query: { limit: FEATURES_MAX, status: 'published' } });
  const [feature_id, setFeature] = useState<string | null>(null);
  const [limit, setLimit] = useState('');
  const [reset, setReset] = useState<string>('MONTHLY');
  const [value, setValue] = useState('');
  const feature = features.data?.items.find(({ id }) => id === feature_id);
  const add = useDeed(
    () =>
      readData(
        api.POST('/entitlements', {
          body: {
            plan_id,
            feature_id: feature_id ?? '',
            feature_type: feature?.type ?? 'metered',
            ...(feature?.type === 'metered'
              ? { usage_limit: limit === '' ? null : limit, usage_reset_period: reset }
              : feature?.type === 'static'
                ? { static_value: value }
                : {}),
          } as never,
        }),
      ),
    async () => {
      await invalidate(queries, '/plans', '/entitlements');
      onClose();
    },
  );
  const submit = (event: FormEvent) => {
    event.preventDefault();
    add.mutate(undefined);
  };
  return (
    <SideSheet title={texts.entitlementTitle} subtitle={texts.entitlementHint} onClose={onClose}>
      <Loaded query={features} rows={3}>
        {({ items }) =>
          items.length === 0 ? (
            <>
              <p className="muted">{texts.noFeatures}</p>
              <CodeBlock label={texts.asCurl} code={formatCurl('POST', '/features', EXAMPLE)} />
            </>
          ) : (
            <form className={styles.form} onSubmit={submit}>
              <Select
                label={texts.feature}
                required
                searchable
                data={items.map(({ id, name }) => ({ value: id, label: name }))}
                value={feature_id}
                onChange={setFeature}
                error={findFieldError(add, 'feature_id')}
              />
              {feature?.type === 'metered' && (
                <>
                  <NumberInput
                    label={texts.limit}
                    value={limit}
                    onValue={setLimit}
                    error={findFieldError(add, 'usage_limit')}
                  />
                  <Select
                    label={texts.reset}
                    allowDeselect={false}
                    data={RESET_PERIODS.map((period) => ({
                      value: period,
                      label: period === 'NEVER' ? texts.never : texts.recurring(texts.period(period)),
                    }))}
                    value={reset}
                    onChange={(next) => next && setReset(next)}
                    error={findFieldError(add, 'usage_reset_period')}
                  />
                </>
              )}
              {feature?.type === 'static' && (
                <TextInput
                  label={texts.value}
                  required
                  value={value}
                  onChange={({ currentTarget }) => setValue(currentTarget.value)}
                  error={findFieldError(add, 'static_value')}
                />
              )}
              <FormFoot
                needs="entitlement:write"
                deed={add}
                fields={['feature_id', 'usage_limit', 'usage_reset_period', 'static_value']}
                action={texts.add}
              />
            </form>
          )
        }
      </Loaded>
    </SideSheet>
  );
}
