/** Current usage of a customer against the grants of the subscriptions: a bar with its words for each meter, and what is switched on. */
import type { ReactNode } from 'react';
import { toPlace } from '../../charts/series.ts';
import type { components } from '../../client/openapi.d.ts';
import { useGet } from '../../client/queries.ts';
import { Chip } from '../../components/chip.tsx';
import { Section, Sheet } from '../../components/page.tsx';
import { Loaded } from '../../components/states.tsx';
import type { Tone } from '../../components/tone.ts';
import { formatQuantity } from '../../figures/format.ts';
import { Quantity } from '../../figures/money.tsx';
import { Day } from '../../figures/when.tsx';
import { useLanguage, useTexts } from '../../texts/texts.ts';
import { deriveLevel, type UsageLevel } from './customer.ts';
import styles from './customer-page.module.css';
import { PAGE_TEXTS } from './page-texts.ts';

type FeatureLevel = components['schemas']['FeatureUsageSummary'];
type GrantedFeature = components['schemas']['AggregatedFeature'];

const LIVE_MS = 5_000;
const TONES: Record<UsageLevel, Tone> = { free: 'plain', near: 'warn', full: 'bad', over: 'bad' };

export function UsageNow({ customer_id }: { customer_id: string }): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const params = { path: { id: customer_id } };
  const usage = useGet('/customers/{id}/usage', params, { refetchInterval: LIVE_MS });
  const granted = useGet('/customers/{id}/entitlements', params);
  const switched = (granted.data?.features ?? []).filter(({ feature }) => feature.type !== 'metered');
  return (
    <Section title={texts.usageNow} hint={texts.usageHint}>
      <Sheet>
        <Loaded query={usage} rows={3}>
          {({ features }) =>
            features.length === 0 && switched.length === 0 ? (
              <p className={styles.note}>{texts.noEntitlements}</p>
            ) : (
              <ul className={styles.levels}>
                {features.map((each) => (
                  <MeterLevel key={each.feature.id} usage={each} />
                ))}
                {switched.map((each) => (
                  <SwitchedFeature key={each.feature.id} granted={each} />
                ))}
              </ul>
            )
          }
        </Loaded>
      </Sheet>
    </Section>
  );
}

function MeterLevel({ usage }: { usage: FeatureLevel }): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const language = useLanguage();
  const { feature, current_usage, total_limit, usage_percent, is_unlimited, is_soft_limit, next_usage_reset_at } =
    usage;
  const limit = total_limit === null ? null : formatQuantity(language, String(total_limit));
  const percent = toPlace(usage_percent);
  const level = deriveLevel(percent);
  const unit = feature.unit_plural ?? '';
  const words = is_unlimited || limit === null ? texts.unlimited : texts.ofLimit(limit, unit);
  return (
    <li className={styles.level}>
      <div className={styles.levelHead}>
        <h3>
          <bdi>{feature.name}</bdi>
        </h3>
        {!is_unlimited && limit !== null && (
          <Chip tone={level === 'full' && is_soft_limit ? 'warn' : TONES[level]}>{texts[level]}</Chip>
        )}
        <span className={styles.levelValue}>
          <Quantity value={current_usage} /> <span className="muted">{words}</span>
        </span>
      </div>
      {!is_unlimited && limit !== null && (
        <div
          role="meter"
          className={styles.track}
          aria-label={feature.name}
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.min(percent, 100)}
          aria-valuetext={`${formatQuantity(language, current_usage)} ${words}, ${formatQuantity(language, usage_percent)} %`}
        >
          <div className={styles.fill} data-level={level} style={{ width: `${Math.min(percent, 100)}%` }} />
        </div>
      )}
      <p className="label">
        {!is_unlimited && limit !== null && (
          <>
            {texts.used(formatQuantity(language, usage_percent))} · {is_soft_limit ? texts.soft : texts.hard}
            {' · '}
          </>
        )}
        {next_usage_reset_at ? (
          <>
            {texts.resets} <Day at={next_usage_reset_at} />
          </>
        ) : (
          texts.neverResets
        )}
      </p>
    </li>
  );
}

function SwitchedFeature({ granted: { feature, entitlement } }: { granted: GrantedFeature }): ReactNode {
  const texts = useTexts(PAGE_TEXTS);
  const values = entitlement.static_values;
  return (
    <li className={styles.level}>
      <div className={styles.levelHead}>
        <h3>
          <bdi>{feature.name}</bdi>
        </h3>
        <span className={styles.levelValue}>
          {values.length > 0 ? (
            <bdi>{values.join(', ')}</bdi>
          ) : (
            <Chip tone={entitlement.is_enabled ? 'ok' : 'plain'}>{entitlement.is_enabled ? texts.on : texts.off}</Chip>
          )}
        </span>
      </div>
    </li>
  );
}
