/** The parts of a subscription: its lines, entitlements, add-ons and terms. */
import { Link } from '@tanstack/react-router';
import type { ReactNode } from 'react';
import { useMayNot } from '../../client/permission.ts';
import { useGet } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { Chip } from '../../components/chip.tsx';
import { CopyId } from '../../components/copy.tsx';
import { DataTable } from '../../components/data-table.tsx';
import { type Fact, Facts, Section, Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import { TextButton } from '../../components/text-button.tsx';
import { formatMoney, formatQuantity } from '../../figures/format.ts';
import { Quantity } from '../../figures/money.tsx';
import { Day, Moment, Period } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { useNow } from '../invoices/now.ts';
import { PriceRate } from '../plans/price-rate.tsx';
import { listCurrentLines, type SubscribedLine, type SubscriptionRecord } from './subscription.ts';
import styles from './subscriptions.module.css';
import { TEXTS } from './texts.ts';

const FROM = '/env/$environment_id/subscriptions/$subscription_id';

const TICK_MS = 2_000;

export function SubscribedLines({ subscription }: { subscription: SubscriptionRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const now_ms = useNow(TICK_MS);
  return (
    <Section title={texts.lines}>
      <DataTable
        label={texts.lines}
        rows={listCurrentLines(subscription.line_items ?? [], now_ms)}
        rowKey={({ id }) => id}
        columns={[
          {
            key: 'name',
            header: texts.line,
            width: 'minmax(130px, 2fr)',
            narrow: 'first',
            cell: (line) => <LineName line={line} />,
          },
          {
            key: 'quantity',
            header: texts.quantity,
            isFigure: true,
            narrow: 'second',
            cell: ({ price_type, quantity }) =>
              price_type === 'FIXED' ? <Quantity value={quantity} /> : <span className="muted">{texts.usage}</span>,
          },
          {
            key: 'price',
            header: texts.price,
            width: 'minmax(150px, 2fr)',
            isFigure: true,
            narrow: 'end',
            cell: ({ price }) => price && <PriceRate price={price as never} />,
          },
          {
            key: 'since',
            header: texts.since,
            width: '104px',
            isFigure: true,
            narrow: 'second',
            cell: ({ start_date }) => <Day at={start_date} />,
          },
        ]}
      />
    </Section>
  );
}

/** The name of a line; a line of the plan leads to its price. */
function LineName({ line }: { line: SubscribedLine }): ReactNode {
  const { entity_type, entity_id: plan_id, price_id, display_name, meter_display_name, end_date } = line;
  const name = display_name || meter_display_name || price_id;
  const texts = useTexts(TEXTS);
  return (
    <>
      {entity_type === 'plan' && plan_id ? (
        <Link
          from={FROM}
          to="/env/$environment_id/plans/$plan_id/prices/$price_id"
          params={({ environment_id }) => ({ environment_id, plan_id, price_id })}
          search={({ zone }) => ({ zone })}
        >
          <bdi>{name}</bdi>
        </Link>
      ) : (
        <bdi>{name}</bdi>
      )}
      {end_date && (
        <span className="label">
          {' · '}
          {texts.until} <Day at={end_date} />
        </span>
      )}
    </>
  );
}

export function SubscriptionEntitlements({ subscription }: { subscription: SubscriptionRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const list = useGet('/subscriptions/{id}/entitlements', { path: { id: subscription.id } });
  return (
    <Section title={texts.entitlements}>
      <Loaded query={list} rows={2}>
        {({ features }) =>
          features.length === 0 ? (
            <Sheet>
              <p className={styles.note}>{texts.noEntitlements}</p>
            </Sheet>
          ) : (
            <DataTable
              label={texts.entitlements}
              rows={features.map((each, index) => ({ ...each, key: `${each.feature.id}-${index}` }))}
              rowKey={({ key }) => key}
              columns={[
                {
                  key: 'feature',
                  header: texts.feature,
                  width: 'minmax(140px, 2fr)',
                  narrow: 'first',
                  cell: ({ feature }) => <bdi>{feature.name}</bdi>,
                },
                {
                  key: 'allows',
                  header: texts.allows,
                  isFigure: true,
                  narrow: 'end',
                  cell: ({ feature, entitlement }) =>
                    feature.type === 'metered' ? (
                      entitlement.usage_limit === null ? (
                        texts.unlimited
                      ) : (
                        <>
                          <Quantity value={String(entitlement.usage_limit)} />
                          {entitlement.is_soft_limit && <span className="label"> {texts.soft}</span>}
                        </>
                      )
                    ) : entitlement.static_values.length > 0 ? (
                      entitlement.static_values.join(', ')
                    ) : entitlement.is_enabled ? (
                      texts.on
                    ) : (
                      texts.off
                    ),
                },
                {
                  key: 'resets',
                  header: texts.resets,
                  cell: ({ entitlement: { usage_reset_period } }) =>
                    usage_reset_period ? texts.periodName(usage_reset_period) : '–',
                },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  );
}

type SubscriptionAddonsProps = {
  subscription: SubscriptionRecord;
  onAttach: () => void;
  onDetach: (association_id: string) => void;
};

export function SubscriptionAddons({ subscription, onAttach, onDetach }: SubscriptionAddonsProps): ReactNode {
  const texts = useTexts(TEXTS);
  const { id, subscription_status } = subscription;
  const list = useGet('/subscriptions/{id}/addons/associations', { path: { id } });
  const isRunning = subscription_status === 'active' || subscription_status === 'trialing';
  const mayNot = useMayNot('subscription:write');
  const blocked = mayNot ?? (isRunning ? null : texts.onlyRunning);
  return (
    <Section
      title={texts.addons}
      end={
        <Button blocked={blocked} onClick={onAttach}>
          {texts.attach}
        </Button>
      }
    >
      <Loaded query={list} rows={1}>
        {(items) =>
          items.length === 0 ? (
            <Sheet>
              <p className={styles.note}>{texts.noAddons}</p>
            </Sheet>
          ) : (
            <DataTable
              label={texts.addons}
              rows={items}
              rowKey={(each) => each.id}
              columns={[
                {
                  key: 'addon',
                  header: texts.addon,
                  width: 'minmax(140px, 2fr)',
                  narrow: 'first',
                  cell: ({ addon, addon_id, quantity }) => (
                    <>
                      <bdi>{addon?.name ?? addon_id}</bdi>
                      {quantity > 1 && ` × ${quantity}`}
                    </>
                  ),
                },
                {
                  key: 'status',
                  header: texts.status,
                  narrow: 'end',
                  cell: ({ addon_status }) => (
                    <Chip tone={addon_status === 'active' ? 'ok' : 'plain'}>{texts.statusName(addon_status)}</Chip>
                  ),
                },
                {
                  key: 'since',
                  header: texts.since,
                  cell: ({ start_date, end_date }) =>
                    end_date ? <Period start={start_date} end={end_date} /> : <Day at={start_date} />,
                },
                {
                  key: 'detach',
                  header: <span className="visually-hidden">{texts.detach}</span>,
                  width: '112px',
                  isFigure: true,
                  cell: ({ id: association_id, addon_status, end_date }) =>
                    blocked === null &&
                    addon_status === 'active' &&
                    end_date === null && (
                      <TextButton onClick={() => onDetach(association_id)}>{texts.detach}</TextButton>
                    ),
                },
              ]}
            />
          )
        }
      </Loaded>
    </Section>
  );
}

export function SubscriptionFacts({ subscription }: { subscription: SubscriptionRecord }): ReactNode {
  const texts = useTexts(TEXTS);
  const language = useLanguage();
  const grants = useGet('/subscriptions/{id}/grants/upcoming', { path: { id: subscription.id } });
  const { commitment_amount, currency, coupon_associations, collection_method } = subscription;
  const term = subscription.commitment_duration ?? subscription.billing_period;
  const commitment: Fact[] = commitment_amount
    ? [
        {
          label: texts.commitment(texts.periodName(term)),
          value: texts.commitmentOf(formatMoney(language, commitment_amount, currency)),
        },
        { label: texts.overage, value: <Quantity value={subscription.overage_factor} /> },
        { label: texts.trueUp, value: subscription.enable_true_up ? texts.yes : texts.no },
      ]
    : [];
  const coupons = (coupon_associations ?? []).map(({ coupon, coupon_id }) => coupon?.name ?? coupon_id);
  return (
    <Section title={texts.record}>
      <Sheet>
        <Facts
          facts={[
            { label: texts.subscriptionId, value: <CopyId id={subscription.id} /> },
            { label: texts.customerId, value: <CopyId id={subscription.customer_id} /> },
            { label: texts.start, value: <Moment at={subscription.start_date} /> },
            ...(subscription.trial_end
              ? [
                  {
                    label: texts.trial,
                    value: <Period start={subscription.trial_start} end={subscription.trial_end} />,
                  },
                ]
              : []),
            {
              label: texts.cycle,
              value: subscription.billing_cycle === 'calendar' ? texts.calendar : texts.anniversary,
            },
            { label: texts.zone, value: subscription.timezone },
            {
              label: texts.collection,
              value: collection_method === 'send_invoice' ? texts.sendInvoice : texts.chargeAutomatically,
            },
            ...commitment,
            ...(coupons.length > 0 ? [{ label: texts.coupons, value: <bdi>{coupons.join(', ')}</bdi> }] : []),
            ...(grants.data?.items ?? []).map(({ scheduled_for, credits }, index) => ({
              label: `${texts.grants} ${index + 1}`,
              value: (
                <>
                  {texts.credits(formatQuantity(language, credits))}, <Day at={scheduled_for} />
                </>
              ),
            })),
          ]}
        />
      </Sheet>
    </Section>
  );
}
