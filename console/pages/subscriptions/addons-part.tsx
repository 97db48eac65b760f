/** Add-ons of a new subscription from its start. */
import { Select } from '@mantine/core';
import type { ReactNode } from 'react';
import { useGet } from '../../client/queries.ts';
import { Button } from '../../components/button.tsx';
import { NoOptions } from '../../components/no-options.tsx';
import { NumberInput } from '../../components/number-input.tsx';
import { TextButton } from '../../components/text-button.tsx';
import { useTexts } from '../../texts/texts.ts';
import { NEW_TEXTS } from './new-texts.ts';
import { type AddonDraft, EMPTY_ADDON } from './subscription-draft.ts';
import type { DraftPartProps } from './subscription-form.tsx';
import styles from './subscriptions.module.css';

const ADDONS_MAX = 200;

export function AddonsPart({ draft, findError, set }: Omit<DraftPartProps, 'prices'>): ReactNode {
  const texts = useTexts(NEW_TEXTS);
  const found = useGet('/addons', { query: { limit: ADDONS_MAX } });
  const names = (found.data?.items ?? []).map(({ id, name }) => ({ value: id, label: name }));
  const { addons } = draft;
  const change = (at: number, changes: Partial<AddonDraft>) =>
    set({ addons: addons.map((addon, index) => (index === at ? { ...addon, ...changes } : addon)) });
  return (
    <div className={styles.form}>
      {addons.map(({ addon_id, quantity, cadence }, at) => {
        const quantityError = findError(`addons[${at}].quantity`);
        return (
          <fieldset key={at} className={styles.part}>
            <legend>{texts.addonNumber(at + 1)}</legend>
            <div className={styles.triple}>
              <Select
                label={texts.addon}
                required
                searchable
                value={addon_id === '' ? null : addon_id}
                data={names}
                nothingFoundMessage={<NoOptions query={found} none={texts.noAddon} />}
                error={quantityError === undefined ? findError(`addons[${at}]`) : undefined}
                onChange={(value) => change(at, { addon_id: value ?? '' })}
              />
              <NumberInput
                label={texts.quantity}
                required
                value={quantity}
                error={quantityError}
                onValue={(next) => change(at, { quantity: next })}
              />
              <Select
                label={texts.addonCadence}
                allowDeselect={false}
                value={cadence}
                data={[
                  { value: 'recurring', label: texts.addonRecurring },
                  { value: 'onetime', label: texts.addonOnce },
                ]}
                onChange={(value) => change(at, { cadence: value === 'onetime' ? 'onetime' : 'recurring' })}
              />
            </div>
            <TextButton
              aria-label={texts.removeAddon(at + 1)}
              onClick={() => set({ addons: addons.filter((_, index) => index !== at) })}
            >
              {texts.remove}
            </TextButton>
          </fieldset>
        );
      })}
      <p>
        <Button onClick={() => set({ addons: [...addons, EMPTY_ADDON] })}>{texts.addAddon}</Button>
      </p>
    </div>
  );
}
