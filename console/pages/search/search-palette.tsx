import { Modal } from '@mantine/core';
import type { ReactNode } from 'react';

export function SearchPalette({ onClose }: { onClose: () => void }): ReactNode {
  return <Modal opened onClose={onClose} title="Search" />;
}
