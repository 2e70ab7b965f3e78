"""Rules about boards: programmers and debuggers that erase flash memory, or change fuses and option bytes for ever.

Flashing a program to a board is everyday work.  An erasure of the whole memory loses keys and calibration, and a fuse is
burnt once.
"""

from __future__ import annotations

from agent_hooks.guards.shell.command import Rule
from agent_hooks.guards.shell.rules.outside import Loss, losses

_WHY = "erases the memory of a board, or changes its fuses for ever"
_RULE = "machine-state"
RULES: dict[str, tuple[Rule, ...]] = losses(
    (
        Loss(
            _RULE,
            "openocd gdb arm-none-eabi-gdb gdb-multiarch telnet nc",
            r"\bflash (?:erase_sector|erase_address|erase_check_off|fillw)\b|\bmass_erase\b|\b(?:un)?lock \d|"
            r"\boption(?:s|_)?_?write\b|"
            r"\bchip_erase\b|\bflash protect\b|\brecover\b",
            _WHY,
            whole=True,
        ),
        Loss(
            _RULE,
            "avrdude",
            r" -e(?= |$)|-U ?(?:\w*fuse|lock|efuse|hfuse|lfuse|eeprom)\d?:w:|--erase\b",
            _WHY,
        ),
        Loss(
            _RULE,
            "stm32_programmer_cli stm32programmer st-link_cli stm32flash st-flash",
            r" (?:-e|--erase|-ob|--optionbytes|-rdu|--readunprotect|-tzenreg|-fuse\w*|-o|-u|-k)(?= |$)| erase\b|"
            r"-mass_erase",
            _WHY,
            r"^stm32flash .*-o? ?/|-ob displ",
        ),
        Loss(
            _RULE,
            "nrfjprog nrfutil pyocd probe-rs probe-run picotool bossac mspdebug minipro jlinkexe jlink pylink "
            "edbg dfu-util teensy_loader_cli commander",
            r"--(?:eraseall|recover|erase(?:page|uicr)|mass-erase|unprotect|erase)\b|\b(?:erase|recover|unlock|"
            r"lock|masserase|unlockchip|otp (?:set|load)|mass-erase)\b|"
            r"^(?:bossac|minipro)\b.* -[eE]\b|device (?:recover|erase)",
            _WHY,
            whole=True,
        ),
        Loss(
            _RULE,
            "esptool esptool.py esptool-py espefuse espefuse.py espsecure espsecure.py idf.py pio platformio "
            "west mbed particle",
            r"\b(?:erase[_-](?:flash|region|otadata|all)|burn[_-]\w+|write[_-]protect_efuse|set[_-]flash_voltage|efuse-\w*burn\S*)\b|"
            r"(?:-t|--target) erase\b|^west flash\b.*--(?:erase|recover)\b|\bdevice doctor\b",
            _WHY,
        ),
        Loss(
            _RULE,
            "fastboot heimdall edl mtkclient adb",
            r"^fastboot (?:-\S+ \S+ )*(?:erase|flashall|flash:raw|oem (?:unlock|lock|\S*erase)|"
            r"flashing (?:un)?lock\S*|-w|format|update|wipe\S*)\b|^fastboot .*-w\b|"
            r"^(?:heimdall flash|edl (?:w|e|erase\w*|reset)|mtkclient (?:e|w|da))\b|\brecovery --wipe|"
            r"\breboot (?:edl|bootloader)\b.*wipe",
            _WHY,
        ),
        Loss(
            _RULE,
            "mpremote ampy rshell mpfshell circup",
            r"\b(?:fs )?rm (?:-\S+ )*-\w*r\w*\b|\brmdir\b|\brm -r\b|\buninstall --all\b",
            "removes the files of a board",
            whole=True,
        ),
    )
)
