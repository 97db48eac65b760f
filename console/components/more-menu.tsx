/** Rarer actions of a record, behind one button. An action that is blocked is shown with its reason. */
import { Menu } from '@mantine/core';
import type { ReactNode } from 'react';
import { defineTexts, useTexts } from '../texts/texts.ts';
import { buttonClass } from './button.tsx';

export type MoreAction = {
  readonly label: string;
  readonly onClick: () => void;
  readonly isDangerous?: boolean;
  /** Why the action is not possible now. */
  readonly blocked?: string | null;
};

export function MoreMenu({ actions }: { actions: readonly MoreAction[] }): ReactNode {
  const texts = useTexts(TEXTS);
  const reasons = [...new Set(actions.flatMap(({ blocked }) => (blocked ? [blocked] : [])))];
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <button type="button" className={buttonClass}>
          {texts.more} <span aria-hidden="true">⌄</span>
        </button>
      </Menu.Target>
      <Menu.Dropdown>
        {actions.map(({ label, onClick, isDangerous = false, blocked }) => (
          <Menu.Item
            key={label}
            disabled={Boolean(blocked)}
            onClick={onClick}
            {...(isDangerous ? { color: 'var(--bad)' } : {})}
          >
            {label}
          </Menu.Item>
        ))}
        {reasons.map((reason) => (
          <Menu.Label key={reason}>{reason}</Menu.Label>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

const TEXTS = defineTexts({ more: 'More' }, { de: { more: 'Mehr' } });
