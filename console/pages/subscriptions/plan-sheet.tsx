/** Changes the plan, now or at the end of the period, after showing its cost. */
import { type ReactNode, useState } from 'react';
import { api, readData } from '../../client/client.ts';
import type { components } from '../../client/openapi.d.ts';
import { useGet } from '../../client/queries.ts';
import { Chip } from '../../components/chip.tsx';
import { Choice } from '../../components/choice.tsx';
import { findFieldError } from '../../components/field-errors.ts';
import { Facts } from '../../components/page.tsx';
import { Day } from '../../figures/when.tsx';
import { useTexts } from '../../texts/texts.ts';
import { PriceRate } from '../plans/price-rate.tsx';
import { ChangeInvoice, ChangeSheet, useChange, useCostPreview, Warnings } from './change-cost.tsx';
import { CHANGE_TEXTS } from './change-texts.ts';
import { Radios } from './radios.tsx';
import { PlanSelect } from './record-selects.tsx';
import type { SubscriptionRecord } from './subscription.ts';
import styles from './subscriptions.module.css';

type PlanChangeBody = components['schemas']['SubscriptionChangeV2Request'];
type PlanChangeCost = components['schemas']['SubscriptionChangeV2Response'];

type SubscriptionSheetProps = { subscription: SubscriptionRecord; onClose: () => void };

export function PlanSheet({ subscription, onClose }: SubscriptionSheetProps): ReactNode {
  const texts = useTexts(CHANGE_TEXTS);
  const [plan_id, setPlan] = useState<string>();
  const [change_at, setChangeAt] = useState<'immediate' | 'end_of_period'>('immediate');
  const [proration_behavior, setProration] = useState<'create_prorations' | 'none'>('create_prorations');
  const { id } = subscription;
  const params = { path: { id } };
  const body: PlanChangeBody | null =
    plan_id === undefined ? null : { target_plan_id: plan_id, change_at, proration_behavior };
  const preview = useCostPreview<PlanChangeCost, PlanChangeBody>(
    '/subscriptions/{id}/change/v2/preview',
    id,
    body,
    (change) => api.POST('/subscriptions/{id}/change/v2/preview', { params, body: change }),
  );
  const deed = useChange(
    () => readData(api.POST('/subscriptions/{id}/change/v2/execute', { params, body: body! })),
    onClose,
  );
  return (
    <ChangeSheet
      title={texts.planTitle}
      fields={['target_plan_id', 'change_at', 'proration_behavior']}
      preview={preview}
      isComplete={body !== null}
      incomplete={texts.choose}
      deed={deed}
      action={change_at === 'immediate' ? texts.changeNow : texts.schedule}
      onClose={onClose}
      form={
        <>
          <PlanSelect
            label={texts.newPlan}
            required
            value={plan_id}
            onValue={setPlan}
            error={findFieldError(preview, 'target_plan_id')}
          />
          <div>
            <p className={styles.label}>{texts.when}</p>
            <Choice
              label={texts.when}
              value={change_at}
              onValue={setChangeAt}
              options={[
                { value: 'immediate', label: texts.now },
                { value: 'end_of_period', label: texts.atEnd },
              ]}
            />
          </div>
          {change_at === 'immediate' && (
            <Radios
              label={texts.proration}
              value={proration_behavior}
              onValue={setProration}
              options={[
                ['create_prorations', texts.prorate],
                ['none', texts.noProrate],
              ]}
            />
          )}
        </>
      }
    >
      {(cost) => <PlanChangePreview cost={cost} />}
    </ChangeSheet>
  );
}

function PlanChangePreview({ cost }: { cost: PlanChangeCost }): ReactNode {
  const texts = useTexts(CHANGE_TEXTS);
  const prices = useNewPrices(cost);
  return (
    <>
      <Facts
        facts={[
          {
            label: texts.newPlan,
            value: (
              <>
                <bdi>{cost.to_plan.name}</bdi> <Chip>{texts[cost.change_type]}</Chip>
              </>
            ),
          },
          { label: texts.when, value: cost.is_scheduled ? <Day at={cost.effective_at} /> : texts.now },
          ...prices.map((price) => ({ label: price.display_name ?? price.id, value: <PriceRate price={price} /> })),
        ]}
      />
      <div className={styles.foot}>
        <ChangeInvoice changed={cost.changed_resources} at={cost.is_scheduled ? cost.effective_at : null} />
      </div>
      <Warnings warnings={cost.warnings} />
    </>
  );
}

/** The prices that begin with the change. */
function useNewPrices({ to_plan, changed_resources }: PlanChangeCost) {
  const plan = useGet('/plans/{id}', { path: { id: to_plan.id } });
  const begun = new Set(
    changed_resources.line_items
      .filter(({ change_action }) => change_action === 'created')
      .map(({ price_id }) => price_id),
  );
  return (plan.data?.prices ?? []).filter(({ id }) => begun.has(id));
}
