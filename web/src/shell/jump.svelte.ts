/** Whether the jump dialog is open. */
let open = $state(false);

export const jump = {
  get isOpen(): boolean {
    return open;
  },
};

export function openJump(): void {
  open = true;
}

export function closeJump(): void {
  open = false;
}
